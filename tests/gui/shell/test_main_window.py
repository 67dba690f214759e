"""The window: menus, toolbar, bars, the start page or the workbench, and the status line."""

import sys
from threading import Event, Timer

from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDropEvent

from ace_studio.gui.shell.main_window import MainWindow
from ace_studio.gui.shell.panel_table import PANELS
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.messages import JobFailed
from ace_studio.records.places import example_recipe
from ace_studio.records.recipes.plan import Precision
from ace_studio.session.kept import autosave
from ace_studio.session.kept.history import HistoryBusyError


def test_a_trace_shows_the_graph_and_the_verdicts(desk):
    desk.traced()
    graph = desk.window.workbench.panel("graph")
    assert graph.view.picture is not None
    model = desk.panel("shapes").table.model()
    chips = {one.name: chip for one, chip in zip(model.columns, model.chips, strict=True)}
    assert chips["pixels.0"].text.startswith("dynamic")


def test_a_file_that_is_dragged_over_an_open_model_is_named_until_it_leaves(desk):
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile("/tmp/net.py")])
    event = QDragEnterEvent(
        QPoint(10, 10), Qt.DropAction.CopyAction, mime, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    )
    hint = desk.window.drop_hint
    desk.window.dragEnterEvent(event)
    assert not hint.isVisible(), "the start page shows where"
    desk.traced()
    desk.window.dragEnterEvent(event)
    assert hint.isVisible() and "net.py" in hint.text() and desk.window.rect().contains(hint.geometry())
    desk.window.dragLeaveEvent(QDragLeaveEvent())
    assert not hint.isVisible()


def test_a_dropped_file_is_opened(desk):
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(example_recipe()))])
    event = QDropEvent(
        QPointF(10, 10), Qt.DropAction.CopyAction, mime, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    )
    desk.window.dropEvent(event)
    desk.settle()
    assert desk.document.title == "recipe.toml"


def test_no_torch_is_imported_by_a_whole_session(desk):
    # Other tests of the same process may have brought torch along; what counts is that nothing here does.
    before = "torch" in sys.modules
    desk.ran()
    for row in PANELS:
        desk.panel(row.id)
    assert ("torch" in sys.modules) == before


def test_a_file_that_is_no_model_says_so_and_cannot_be_traced(desk, tmp_path):
    path = tmp_path / "text.pt"
    path.write_text("hello", encoding="utf-8")
    desk.engine.by_itself = False
    desk.window.commands.open_path(str(path))
    problem = Problem(code=ErrorCode.BAD_FILE, what="text.pt is plain text, not a model")
    desk.session.apply(JobFailed(job=desk.engine.requests[-1].job, problems=(problem,)))
    desk.settle()
    assert not desk.window.actions_.by_id["trace"].isEnabled()
    assert desk.window.workbench.panel("graph")._empty._title.text() == "This file could not be opened"
    assert desk.panel("model")._kind.text() == "It could not be opened"
    assert not desk.panel("model")._tensors.isVisible()


def test_a_new_window_is_never_larger_than_the_screen(desk, qtbot):
    window = MainWindow(desk.session, desk.window.theme)
    qtbot.addWidget(window)
    room = window.screen().availableSize()
    assert window.width() <= room.width()
    assert window.height() <= room.height() - 20, "a title bar has room too"


def test_closing_the_window_waits_until_the_choices_are_stored(desk, monkeypatch):
    moves, written = Event(), []
    monkeypatch.setattr(autosave, "write_private", lambda path, *_, **__: moves.wait(30) and written.append(path))
    desk.open_example()
    desk.session.plan.set_default_precision(Precision.BF16)
    assert not written
    Timer(0.05, moves.set).start()
    desk.window.close()
    assert written


def test_a_history_that_is_busy_is_tried_again_until_it_is_free(desk, qtbot, monkeypatch):
    store = desk.session.history.store

    def busy():
        raise HistoryBusyError(Problem(code=ErrorCode.NOT_FOUND, what="it is in use"))

    with monkeypatch.context() as patched:
        patched.setattr(store, "list", busy)
        desk.session.history.load_history()
        desk.settle()
        assert desk.document.history_waits
    qtbot.waitUntil(lambda: not desk.document.history_waits, timeout=20_000)
    assert desk.document.history == ()
