"""The place of one panel, wherever it is docked; the panel is made when it is first seen, or when its row says so."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator

from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QWidget

from ace_studio.gui.shell.panel_table import PanelRow
from ace_studio.gui.style import Theme, tr
from ace_studio.gui.widgets.layouts import column
from ace_studio.gui.widgets.panel import Panel
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.session.document import Document, Part
from ace_studio.session.session import Session

_NO_MORE = object()


class PanelSlot(QWidget):
    """Holds one panel.

    The panel is made when it is first seen, or before as its row says, and updated only while it is visible.
    """

    failed = Signal(object)
    """A `Problem`, after an exception in the panel."""
    panel_wanted = Signal(str)
    """Id of the panel to show next."""
    dialog_wanted = Signal(str, tuple)
    about_to_open = Signal()
    """Another model is about to be opened."""

    def __init__(self, row: PanelRow, session: Session, theme: Theme) -> None:
        super().__init__()
        self.row = row
        self.panel: Panel | None = None
        self._empty: Panel | None = None
        """The panel as it was made, before it is filled."""
        self._parts: Iterator[None] = iter(())
        # A timer of its own: what `QTimer.singleShot` posts comes before the keys and clicks that wait.
        self._next_turn = QTimer(self, singleShot=True, interval=0)
        self._next_turn.timeout.connect(lambda: self._guarded(self._begin))
        self._session = session
        self._theme = theme
        self._stale: frozenset[Part] = frozenset()
        self._fault = ""
        self._layout = column()
        self.setLayout(self._layout)
        theme.changed.connect(self._restyled)

    def _restyled(self, *_: object) -> None:
        """What is not seen now is drawn in the new colours when it is seen again."""
        self._stale = frozenset(Part)

    def refresh(self, document: Document, parts: frozenset[Part]) -> None:
        """Show the changes, now or when the panel is seen again."""
        if self.panel is None:
            if self._empty is None and self.row.made_when is not None and self.row.made_when(document):
                self._next_turn.start()
        elif not self.isVisible():
            self._stale |= parts
        elif self.wants(parts):
            self._guarded(lambda: self._update(document))

    def wants(self, parts: frozenset[Part]) -> bool:
        """Whether the panel has to work now to show these changes."""
        return self.panel is not None and self.isVisible() and bool(parts & self.panel.shows)

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802 - Qt's name
        """Make the panel, or catch up.

        It is made in a turn of the event loop of its own, each of its parts in another, and it is filled in the last:
        several that appear at once do not add up to a stall.
        """
        super().showEvent(event)
        if self.panel is None:
            self._next_turn.start()
        elif self._stale & self.panel.shows:
            self._guarded(lambda: self._update(self._session.document))
        self._stale = frozenset()

    def _update(self, document: Document) -> None:
        if self.panel is not None:
            self.panel.update_from(document)

    def _guarded(self, work: Callable[[], object]) -> None:
        """Run an update. An exception in one panel is reported as a problem; the window goes on."""
        try:
            work()
        except Exception as error:  # noqa: BLE001 - the top of the window: behind it is only Qt, which would abort
            problem = Problem(
                code=ErrorCode.INTERNAL,
                what=tr("The panel {title} could not show this", title=self.row.title),
                why=f"{type(error).__name__}: {error}",
                remedy=tr("The rest of the window still works. Please report this with the details"),
                details=traceback.format_exc(),
            )
            if problem.why != self._fault:
                self._fault = problem.why
                self.failed.emit(problem)

    def _begin(self) -> None:
        """Make the panel, the next of its parts, or fill it; the rest follows in other turns of the event loop."""
        if self.panel is not None:
            return
        if self._empty is None:
            self._make()
        elif next(self._parts, _NO_MORE) is _NO_MORE:
            if not self.isVisible():
                return  # it is filled when it is seen
            self.build()
        if self.panel is None:
            self._next_turn.start()

    def _make(self) -> Panel:
        if self._empty is None:
            self._empty = panel = self.row.build(self._session, self._theme)
            self._parts = panel.make_parts()
            panel.panel_wanted.connect(self.panel_wanted)
            panel.dialog_wanted.connect(self.dialog_wanted)
            panel.about_to_open.connect(self.about_to_open)
            self._layout.addWidget(panel)
            self.setFocusProxy(panel)
        return self._empty

    def build(self) -> Panel:
        """Make the panel and fill it, if that was not done yet."""
        if self.panel is None:
            made = self._make()
            for _ in self._parts:
                pass
            self.panel = made
            self.panel.update_from(self._session.document)
        return self.panel
