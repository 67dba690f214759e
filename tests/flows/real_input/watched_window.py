"""The window as a process of its own, with a socket that answers what a screen reader would find in it.

``python -m tests.flows.real_input.watched_window SOCKET ENGINES [PATH ...]``. The socket only reads: every line that
comes is answered with JSON: what has the keyboard, and every element on the screen. All else goes through X. Engines
are forked from the server at ENGINES.
"""

import json
import socket
import sys
from collections.abc import Iterator

from PySide6.QtCore import QObject, QRect, QSocketNotifier
from PySide6.QtGui import QAccessible, QAccessibleInterface
from PySide6.QtWidgets import QApplication

MOST_CHILDREN = 500
"""Of one element: a table of 50,000 rows is not read to its end."""


class Probe(QObject):
    """Answers on a Unix socket, between two events of the window."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(path)
        self._server.listen()
        self._called = QSocketNotifier(self._server.fileno(), QSocketNotifier.Type.Read, self)
        self._called.activated.connect(self._answer)

    def _answer(self) -> None:
        caller, _ = self._server.accept()
        with caller:
            caller.sendall(json.dumps({"focus": focus_now(), "seen": seen_now()}).encode())


def focus_now() -> dict[str, object]:
    """What has the keyboard: the widget, or the cell or row of it."""
    widget = QApplication.focusWidget()
    if widget is None:
        return {}
    seen = QAccessible.queryAccessibleInterface(widget)
    return _told(seen.focusChild() or seen, title=widget.window().windowTitle(), ratio=widget.devicePixelRatioF())


def seen_now() -> list[dict[str, object]]:
    """Every element of every window that is shown, from the outside in; what covers another window is last."""
    windows = [one for one in QApplication.topLevelWidgets() if one.isVisible()]
    active = QApplication.activeModalWidget() or QApplication.activeWindow()
    popup = QApplication.activePopupWidget()
    windows.sort(key=lambda one: (one is popup, one is active))
    found: list[dict[str, object]] = []
    for window in windows:
        seen = QAccessible.queryAccessibleInterface(window)
        title = window.windowTitle() or type(window).__name__
        found += _elements(seen, title=title, ratio=window.devicePixelRatioF(), clip=seen.rect())
    return found


def _elements(seen: QAccessibleInterface, *, title: str, ratio: float, clip: QRect) -> Iterator[dict[str, object]]:
    state = seen.state()
    if state.invisible and not state.offscreen:
        return
    shown = seen.rect() & clip
    if not shown.isEmpty():
        yield _told(seen, title=title, ratio=ratio, shown=shown)
    inner = shown if not shown.isEmpty() else clip
    for at in range(min(seen.childCount(), MOST_CHILDREN)):
        child = seen.child(at)
        if child is not None and child.isValid():
            yield from _elements(child, title=title, ratio=ratio, clip=inner)


def _told(seen: QAccessibleInterface, *, title: str, ratio: float, shown: QRect | None = None) -> dict[str, object]:
    """What is told of an element; ``rect`` is x, y, width, height in pixels of the screen."""
    state = seen.state()
    return {
        "role": seen.role().name,
        "name": seen.text(QAccessible.Text.Name),
        "value": seen.text(QAccessible.Text.Value),
        "description": seen.text(QAccessible.Text.Description),
        "window": title,
        "rect": [round(each * ratio) for each in (shown or seen.rect()).getRect()],
        "enabled": not state.disabled,
        "checked": bool(state.checked),
        "selected": bool(state.selected),
    }


def main() -> int:
    """Start the window as the program does."""
    from ace_studio.__main__ import main as start
    from ace_studio.gui.shell.start import make_application
    from ace_studio.jobs import launch
    from ace_studio.session.kept.folders import UserFolders
    from ace_studio.session.kept.settings import Settings
    from tests.forked_engines import ForkServer

    _, path, engines, *words = sys.argv
    launch._popen = ForkServer(engines).popen
    make_application(Settings(UserFolders.of_user().settings))  # the program takes the one that is there
    probe = Probe(path)
    sys.argv = ["ace-studio", *(words or ["open"])]
    try:
        return start()
    finally:
        del probe


if __name__ == "__main__":
    sys.exit(main())
