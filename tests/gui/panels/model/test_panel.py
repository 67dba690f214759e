"""The model panel: the file, what opening it would run, and the functions to use."""

from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QPushButton

from ace_studio.gui.panels.model.panel import Origin
from ace_studio.records.messages import FileReport, JobFailed
from ace_studio.records.recipes.file import recipe_text
from ace_studio.records.recipes.recipe import ModelChoice, Recipe
from ace_studio.records.sending import Departure, leaving
from ace_studio.records.untrusted import untrusted_problem
from ace_studio.session.document import Document
from tests.gui.comparing import two_records
from tests.gui.gestures import choose
from tests.session.fake_engine_link import result


def test_the_model_panel_offers_the_callables_of_the_file(desk):
    desk.open_example()
    panel = desk.panel("model")
    offered = [panel.entry.itemData(at) for at in range(panel.entry.count())]
    assert "make_model" in offered
    choose(desk, panel.evaluate, "nothing: compare outputs")
    assert desk.document.recipe.evaluate.function == ""


def test_below_the_entry_stands_its_signature_unless_that_says_what_the_field_says(desk):
    desk.open_example()
    panel = desk.panel("model")
    assert panel._entry_about.text().startswith("make_model() -> nn.Module")
    (entry,) = (one for one in desk.document.file.entries if one.name == "make_model")
    plain = replace(entry, signature="()", summary="")
    desk.session._state.set_document(replace(desk.document, file=replace(desk.document.file, entries=(plain,))))
    panel.update_from(desk.document)
    assert panel.entry.currentText() == "make_model()"
    assert panel._entry_about.isHidden()


def test_calibration_inputs_come_from_a_file_or_a_folder_of_images(desk, monkeypatch):
    desk.traced()
    panel, folder = desk.panel("model"), desk.document.folder
    buttons = {one.accessibleName(): one for one in panel.findChildren(QPushButton)}
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (f"{folder}/seen.npz", ""))
    desk.bot.mouseClick(buttons["Calibration inputs from a file"], Qt.MouseButton.LeftButton)
    desk.settle()
    assert desk.document.recipe.calibration.inputs == "seen.npz"
    assert panel.calibration.currentText() == "seen.npz"
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: f"{folder}/pictures")
    desk.bot.mouseClick(buttons["Calibration inputs from a folder of images"], Qt.MouseButton.LeftButton)
    assert desk.document.recipe.calibration.inputs == "pictures/"


def test_what_fits_the_weights_comes_before_looking_for_code(desk):
    report = FileReport(
        path="/m/a.pth", kind="state-dict", label="Weights", sha256="a", size_bytes=1, trust="data",
        fits=("timm:resnet18",),
    )  # fmt: skip
    origin = Origin(desk.session, about_to_open=lambda: None)
    desk.bot.addWidget(origin)
    origin.update_from(Document(file=report))
    texts = [one.text() for one in origin.findChildren(QPushButton)]
    assert texts[0] == "resnet18\nof timm"
    assert texts[1].startswith("Look for the code")
    origin.update_from(Document(file=replace(report, kind="python")))
    assert origin.isHidden()


def test_of_the_model_of_a_past_run_it_says_what_the_run_knows_and_waits_for_nothing(desk):
    recipe = Recipe(model=ModelChoice(source="net.py", entry="make"))
    desk.session.history.store.add(
        result(), recipe_toml=recipe_text(recipe), title="net.py", output="/gone", folder="/models",
        date=datetime(2026, 11, 1, 12, 0, tzinfo=UTC),
    )  # fmt: skip
    desk.open_example()
    history = desk.panel("history")
    desk.bot.waitUntil(lambda: history.model.rowCount() == 1)
    place = history.table.visualRect(history.model.index(0, 1)).center()
    desk.bot.mouseClick(history.table.viewport(), Qt.MouseButton.LeftButton, pos=place)
    desk.settle()
    desk.bot.mouseClick(history.look_button, Qt.MouseButton.LeftButton)
    desk.settle()
    assert desk.document.past is not None
    panel = desk.panel("model")
    first, second = panel._kind.text().splitlines()
    assert first.startswith("As it was in a past run, 2026-11-01")
    assert second == "Fingerprint of the capture: f1"
    assert (panel._name.text(), panel._where.text(), panel.entry.currentText()) == ("net.py", "/models", "make")


def test_the_model_of_a_comparison_waits_for_nothing(desk):
    recipe = Recipe(model=ModelChoice(source="net.py", entry="make"))
    two_records(desk, (recipe, result()), (recipe, result()))
    assert desk.panel("model")._kind.text() == "As it was when A and B were pinned"


def test_a_file_that_the_engine_asks_trust_for_is_named_with_its_place_before_it_is_allowed(desk):
    desk.trusted()
    desk.engine.by_itself = False
    desk.do("trace")
    refused = untrusted_problem(Path("/elsewhere/layers.py"), "b" * 64, "layers.py")
    desk.session.apply(JobFailed(job=desk.engine.requests[-1].job, problems=(refused,)))
    panel = desk.panel("model")
    assert "• layers.py holds code that has not been trusted: /elsewhere/layers.py" in panel._would_run.text()
    assert "layers.py is needed too" in desk.window.step_line.buttons["trust"].toolTip()
    desk.bot.mouseClick(desk.window.step_line.buttons["trust"], Qt.MouseButton.LeftButton)
    desk.settle()
    assert "layers.py" not in panel._would_run.text()
    assert "b" * 64 in desk.session._trust.hashes


def test_no_name_of_a_file_forges_a_line_of_what_would_run(desk):
    desk.open_example()
    name = "net.py\nTrusted by you\n\x1b[2K\u202e"
    report = replace(
        desk.document.file,
        path=f"/m/{name}",
        trust="code",
        would_run=(f"imports of {name}",),
        notes=(f"beside {name}",),
    )
    desk.session._state.set_document(replace(desk.document, file=report, is_trusted=False))
    panel = desk.panel("model")
    panel.update_from(desk.document)
    assert panel._would_run.text() == "• imports of net.py\\u000aTrusted by you\\u000a\\u001b[2K\\u202e"
    for shown in (panel._notes.text(), panel._name.text(), panel._where.text()):
        assert "\n" not in shown and "\x1b" not in shown


def test_files_that_would_go_to_a_host_are_listed_before_they_are_allowed(desk, tmp_path):
    for name in ("model.py", "data.npz"):
        (tmp_path / name).write_text("12345")
    desk.trusted()
    desk.engine.by_itself = False
    desk.do("trace")
    files = Departure(folder=tmp_path, files=leaving(sorted(tmp_path.glob("*.*")), tmp_path))
    refused = files.refusals("eve@far", is_named=False)
    desk.session.apply(JobFailed(job=desk.engine.requests[-1].job, problems=refused))
    said = desk.panel("model")._would_run.text()
    assert "• Files would be sent to eve@far: the recipe names that machine; 2 files with 10 bytes would go" in said
    assert said.endswith("data.npz (5 bytes)\nmodel.py (5 bytes)")
    trust = desk.window.step_line.buttons["trust"]
    assert trust.toolTip().startswith("Files would be sent to another machine: look at the list")
    desk.bot.mouseClick(trust, Qt.MouseButton.LeftButton)
    desk.settle()
    assert any(one.startswith("send:eve@far:") for one in desk.session._trust.hashes)
