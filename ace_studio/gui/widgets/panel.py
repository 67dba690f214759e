"""The base class of panels: a widget that shows parts of the document and turns gestures into calls of the session."""

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from PySide6.QtCore import Qt, QUrl, Signal
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QLayout, QStackedWidget, QWidget

from ace_studio.gui.style import Colours, Theme, tr
from ace_studio.gui.widgets.layouts import column
from ace_studio.gui.widgets.small import EmptyState, FilterField
from ace_studio.records.by_identity import are_same
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.session.document import Document, Part
from ace_studio.session.session import Session


class Panel(QWidget):
    """One panel. It does not know other panels; what they share is in the document."""

    title: ClassVar[str] = ""
    """Name on the tab and for screen readers."""
    shows: ClassVar[frozenset[Part]] = frozenset()
    """Parts of the document whose change calls `update_from`."""

    panel_wanted = Signal(str)
    """Id of the panel to show next, after a gesture in this one."""
    dialog_wanted = Signal(str, tuple)
    """Name of a dialog to show, and what it is made of, for `Commands.show_dialog`."""
    about_to_open = Signal()
    """A gesture in this panel is about to open another model."""

    def __init__(self, session: Session, theme: Theme) -> None:
        super().__init__()
        self.session = session
        self.theme = theme
        self._drawn: tuple[object, ...] = ()
        """What `has_changed` was asked about last."""
        self.setAccessibleName(self.title)
        self.setProperty("role", "surface")
        self.setProperty("help", f"window#{self.title.lower()}")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        theme.changed.connect(self.restyle)

    def show_pages(self, icon: str, content: QWidget, *, above: QLayout | None = None) -> None:
        """Lay the panel out: ``content``, or where there is none an empty state with an icon, and a line above."""
        self._empty = EmptyState(icon, self.theme)
        self._pages = QStackedWidget()
        self._pages.addWidget(self._empty)
        self._pages.addWidget(content)
        self.setLayout(column(*([above] if above is not None else ()), self._pages, gap=0))

    def make_parts(self) -> Iterator[None]:
        """Make what `__init__` left out, a part until each ``yield``; all of it before the first `update_from`.

        Each part gets a turn of the event loop of its own: making many fields at once would stop the window.
        """
        yield from ()

    @property
    def colours(self) -> Colours:
        """The colours of the theme."""
        return self.theme.colours

    def update_from(self, document: Document) -> None:
        """Show the document. Called only while the panel can be seen."""
        raise NotImplementedError

    def another_model(self) -> None:
        """Another model is open: forget what was typed to find something in the last one."""
        for field in self.findChildren(FilterField):
            field.clear()

    def open_outside(self, path: str) -> None:
        """Open a file or a folder with the desktop's program; where it has none, copy the path and say so."""
        if not QDesktopServices.openUrl(QUrl.fromLocalFile(path)):
            QGuiApplication.clipboard().setText(path)
            what, why = tr("Nothing on this desktop opens it"), tr("No program is registered for {path}", path=path)
            remedy = tr("The path is on the clipboard now; paste it into a terminal or a file manager")
            self.session.report(Problem(code=ErrorCode.NOT_INSTALLED, what=what, why=why, remedy=remedy))

    def save(self, path: Path) -> None:
        """Save what is shown as a file. Only panels that show a picture can."""
        raise NotImplementedError

    def export(self) -> None:
        """Save the artifact that is shown. Only the results have one."""
        raise NotImplementedError

    def show_part(self, part_id: str) -> None:
        """Bring one of several parts to the front. Only panels with parts can."""
        raise NotImplementedError

    def has_changed(self, *wanted: object) -> bool:
        """Whether these records are others than those of the last call, after which they were drawn."""
        before, self._drawn = self._drawn, wanted
        return not are_same(before, wanted)

    def restyle(self, _colours: Colours) -> None:
        """Use another theme: draw again what is seen. What is not is drawn when it is seen."""
        self._drawn = ()
        if self.isVisible():
            self.update_from(self.session.document)
