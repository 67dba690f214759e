"""The panel with a process of the sweep that says what the test tells it to."""

from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtGui import QDesktopServices, QPalette
from PySide6.QtWidgets import QFileDialog

from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.messages import JobFailed
from ace_studio.records.recipes.file import recipe_text
from ace_studio.records.safe_file import file_sha256
from ace_studio.records.sweeps import (
    Axis,
    JobAdvanced,
    RowStatus,
    SweepAdvanced,
    SweepEnded,
    SweepReport,
    SweepRow,
    SweepStatus,
)
from ace_studio.sweeps.tables import write_tables
from tests.gui.panels.sweep.typing_axes import typed
from tests.session.fake_engine_link import result
from tests.session.fake_sweep_link import sweep_row


def cells(panel, title):
    column = next(one for one in panel.model.columns if one.title.startswith(title))
    return [column.text(value) for value in column.values]


def test_what_is_typed_into_a_line_becomes_jobs_and_their_number_is_told(sweeping):
    typed(sweeping, Axis.PLAN, 'fp32, { default = "int8-static", rest = "bf16" }')
    typed(sweeping, Axis.THREADS, "1, 2, all")
    assert sweeping.document.sweep.sweep.axes[Axis.PLAN] == ("fp32", {"default": "int8-static", "rest": "bf16"})
    assert sweeping.document.sweep.sweep.axes[Axis.THREADS] == (1, 2, "all")
    assert sweeping.sweep.forecast.text().startswith("6 jobs, ")
    assert "No earlier run" in sweeping.sweep.forecast.text()
    sweeping.bot.mouseClick(sweeping.sweep.start_button, Qt.MouseButton.LeftButton)
    (order,) = sweeping.link.orders
    assert order.sweep.recipes == ("recipe.toml",)
    assert 'source = "model.py"' in order.texts["recipe.toml"]
    assert len(order.trusted_sha256) == 1


def test_rows_come_with_progress_and_the_front_and_the_sweep_is_cancelled_and_continued(sweeping):
    panel, verbs = sweeping.sweep, sweeping.session.sweep
    typed(sweeping, Axis.THREADS, "1, 2, 4")
    panel.start_button.click()
    verbs.apply(SweepAdvanced(row=None, done=0, total=3, workers=2))
    verbs.apply(JobAdvanced(job="2", phase="Measuring latency"))
    verbs.apply(SweepAdvanced(row=sweep_row(1, 4.0), done=1, total=3, workers=2, remaining_s=40.0))
    sweeping.settle()
    assert "1 of 3 jobs" in panel.status.text()
    assert "about 40" in panel.status.text()
    assert "2 Measuring latency" in panel.status.text()
    assert cells(panel, "front") == ["●"]
    assert not panel.axes.fields[Axis.PLAN].isEnabled()
    verbs.apply(SweepAdvanced(row=sweep_row(2, 2.0), done=2, total=3, workers=2, remaining_s=20.0))
    sweeping.settle()
    assert cells(panel, "front") == ["", "●"]
    assert cells(panel, "threads") == ["1", "2"]
    panel.cancel_button.click()
    assert sweeping.link.stops == 1
    rows = (sweep_row(1, 4.0), sweep_row(2, 2.0), SweepRow(job="3", recipe="r", axes={}, status=RowStatus.CANCELLED))
    verbs.apply(SweepEnded(report=SweepReport(status=SweepStatus.CANCELLED, rows=rows)))
    sweeping.settle()
    assert "2 of 3 jobs have a result" in panel.status.text()
    assert panel.start_button.text() == "Continue"
    panel.start_button.click()
    assert sweeping.link.orders[0] == sweeping.link.orders[1]


def test_the_runs_of_jobs_are_shown_in_all_panels_one_after_the_other(sweeping):
    panel, verbs, history = sweeping.sweep, sweeping.session.sweep, sweeping.session.history.store
    panel.start_button.click()
    runs = []
    for job in (1, 2):
        runs.append(history.add(result(), recipe_toml=recipe_text(sweeping.document.recipe), title="m.py"))
        verbs.apply(SweepAdvanced(row=replace(sweep_row(job, 2.0), run=runs[-1]), done=job, total=2, workers=1))
    sweeping.settle()
    for at, run in enumerate(runs):
        sweeping.panel("sweep").table.selectRow(at)
        sweeping.bot.keyClick(panel.table, Qt.Key.Key_Return)
        assert sweeping.document.past.id == run


def test_why_a_sweep_cannot_start_is_red(sweeping):
    def ink():
        return sweeping.sweep.forecast.palette().color(QPalette.ColorRole.WindowText).name()

    typed(sweeping, Axis.THREADS, "1, 2")
    assert ink() == sweeping.window.theme.colours.text
    sweeping.session.sweep.set_axis(Axis.PLAN, ("bf17",))
    sweeping.settle()
    assert sweeping.session.sweep.preview().problems
    assert ink() == sweeping.window.theme.colours.bad


def test_no_sweep_starts_with_a_file_that_could_not_be_opened(sweeping, tmp_path):
    assert sweeping.sweep.start_button.isEnabled()
    sweeping.engine.by_itself = False
    (file := tmp_path / "notes.txt").write_text("words")
    sweeping.window.commands.open_path(str(file))
    refused = Problem(code=ErrorCode.BAD_FILE, what="notes.txt is no model")
    sweeping.session.apply(JobFailed(job=sweeping.engine.requests[-1].job, problems=(refused,)))
    sweeping.settle()
    assert not sweeping.sweep.start_button.isEnabled()
    assert sweeping.sweep.start_button.toolTip() == "It could not be opened"


def test_a_sweep_that_is_opened_as_a_file_is_shown(sweeping, tmp_path):
    (tmp_path / "a.toml").write_text('format = 1\n[model]\nsource = "m.onnx"\n')
    (tmp_path / "s.toml").write_text('format = 1\nrecipes = ["a.toml"]\n[axes]\nthreads = [1, 2]\n')
    sweeping.window.commands.show_panel("history")
    sweeping.window.commands.open_path(str(tmp_path / "s.toml"))
    sweeping.settle()
    assert sweeping.sweep.isVisible()
    assert sweeping.sweep.axes.fields[Axis.THREADS].text() == "1, 2"


def test_the_report_is_opened_and_the_table_exported(sweeping, tmp_path, monkeypatch):
    panel, out = sweeping.sweep, tmp_path / "out"
    assert not panel.report_button.isEnabled()
    out.mkdir()
    write_tables(SweepReport(status=SweepStatus.OK, rows=(sweep_row(1, 2.0),)), out)
    sweeping.session.sweep.read_results()
    sweeping.settle()
    opened = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toLocalFile()) or True)
    panel.report_button.click()
    assert opened == [str(out / "sweep.html")]
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path / "mine.csv"), ""))
    panel.export_button.click()
    assert (tmp_path / "mine.csv").read_text().startswith("job,recipe,axis.threads")
    (tmp_path / "key").write_text("secret")
    (out / "sweep.csv").unlink()
    (out / "sweep.csv").symlink_to(tmp_path / "key")
    (tmp_path / "mine.csv").unlink()
    panel.export_button.click()
    assert not (tmp_path / "mine.csv").exists()


def test_code_that_was_refused_is_trusted_by_a_button_that_names_it(sweeping, tmp_path):
    panel, verbs, code = sweeping.sweep, sweeping.session.sweep, tmp_path / "other.py"
    code.write_text("x = 1\n")
    sha256 = file_sha256(code)
    problem = Problem(code=ErrorCode.UNTRUSTED, what="no", where=str(code), details=f"sha256:{sha256}")
    row = SweepRow(job="1", recipe="r", axes={}, status=RowStatus.FAILED, error=problem)
    panel.start_button.click()
    verbs.apply(SweepEnded(report=SweepReport(status=SweepStatus.INCOMPLETE, rows=(row,))))
    sweeping.settle()
    assert panel.trust_button.isVisible()
    assert str(code) in panel.trust_button.toolTip()
    panel.trust_button.click()
    assert sha256 in sweeping.link.orders[-1].trusted_sha256
