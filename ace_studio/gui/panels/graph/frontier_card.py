"""The card at the place where the capture stops: what happened, why, what helps, and buttons for it."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QApplication, QFrame, QLabel

from ace_studio.gui.ops.break_entries import Entry, select_line
from ace_studio.gui.style import Theme, monospace, stroke_icon, stroke_pixmap, tr
from ace_studio.gui.widgets.layouts import CLOSE, MARGIN, TIGHT, Flow, box, column, row
from ace_studio.gui.widgets.small import allow, button, label, selectable, set_role, show_words, tool_button
from ace_studio.gui.words.formatting import sentence
from ace_studio.session.document import Document
from ace_studio.session.session import Session

WIDTH = 380


class FrontierCard(QFrame):
    """What, why, remedy and place of one entry, with Open line, Try fix and Copy."""

    panel_wanted = Signal(str)
    """Id of the panel to show next."""
    closed = Signal()

    def __init__(self, session: Session, theme: Theme, *, closable: bool = True) -> None:
        super().__init__()
        self._session, self._theme = session, theme
        self.entry: Entry | None = None
        self.setProperty("role", "frontier")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setFixedWidth(WIDTH)
        self.setCursor(Qt.CursorShape.ArrowCursor)
        self._picture = QLabel()
        self._heading = label("", strong=True)
        tip = tr("Close; the list of breaks keeps the entry")
        self._close = tool_button(tr("Close"), self.closed.emit, tip=tip)
        if not closable:
            self._close.hide()
        self._what, self._why, self._code = label(""), label("", "dim"), label("", wrap=False)
        self._code.setFont(monospace())
        self._remedy, self._where = label(""), label("", "dim")
        for part in (self._what, self._why, self._code, self._remedy, self._where):
            selectable(part)
        self.open_button = button(tr("Open line"), self._open_line)
        self.try_button = button(tr("Try fix"), self._try)
        self.copy_button = button(tr("Copy"), self._copy)
        self.inputs_button = button(tr("Go to Inputs"), lambda: self.panel_wanted.emit("shapes"))
        self.list_button = button(tr("All breaks"), lambda: self.panel_wanted.emit("breaks"))
        head = row(self._picture, self._heading, self._close, gap=CLOSE, stretch=1)
        parts = (head, self._what, self._why, self._code, self._remedy, self._where)
        self._buttons = box(
            Flow(self.inputs_button, self.try_button, self.open_button, self.copy_button, self.list_button)
        )
        self.setLayout(column(*parts, self._buttons, margin=MARGIN, gap=TIGHT))
        theme.changed.connect(self._restyle)
        self.hide()

    def show_entry(self, entry: Entry, document: Document, *, why_not: str, others: int = 0) -> None:
        """Show one place.

        Args:
            entry: The place.
            document: What there is now.
            why_not: Why no fix can be tried now; empty if one can.
            others: How many more places the list has.
        """
        self.entry = entry
        self._heading.setText(f"{entry.heading}{_older(entry, document)}")
        for widget, text in (
            (self._what, sentence(entry.title)),
            (self._why, sentence(entry.why)),
            (self._code, entry.code.strip()),
            (self._remedy, entry.remedy and f"→ {sentence(entry.remedy)}"),
            (self._where, "  ·  ".join(part for part in (entry.place, entry.module, entry.cost) if part)),
        ):
            show_words(widget, text)
        self._where.setToolTip(entry.where)
        self.inputs_button.setVisible(entry.is_about_inputs)
        self.open_button.setVisible(bool(entry.line))
        self.try_button.setVisible(entry.is_fixable)
        allow(self.try_button, why_not, tr("Try every fix that fits, each in a copy of your files"))
        self.list_button.setVisible(others > 0)
        self.setAccessibleName(f"{entry.heading}. {entry.title}")
        self.setAccessibleDescription(entry.as_text())
        self.setToolTip(entry.as_text())
        self._restyle()
        self.show()

    def adjustSize(self) -> None:  # noqa: N802 - Qt's name
        """Take the size of the content. Where it is higher than the maximum, all but the first sentence is left out."""
        words = (self._code, self._why, self._where, self._remedy)
        for part in words:
            part.setVisible(bool(part.text()))
        self._buttons.show()
        layout = self.layout()
        for each in (*words, self._buttons):
            if layout is None or layout.totalHeightForWidth(WIDTH) <= self.maximumHeight():
                break
            each.hide()
        super().adjustSize()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        """Esc closes the card."""
        if event.key() == Qt.Key.Key_Escape:
            self.closed.emit()
        else:
            super().keyPressEvent(event)

    def _restyle(self, *_: object) -> None:
        colours = self._theme.colours
        is_break = self.entry is not None and self.entry.seam is not None
        icon, colour = ("warn", colours.warn) if is_break else ("bad", colours.bad)
        set_role(self, "frontier" if is_break else "failure")
        self._picture.setPixmap(stroke_pixmap(icon, colour, size=18, pixel_ratio=self.devicePixelRatioF()))
        self._close.setIcon(stroke_icon("close", colours.text_dim, colours.text_dim))

    def _open_line(self) -> None:
        if self.entry is not None:
            select_line(self.entry, self._session.view)
            self.panel_wanted.emit("source")

    def _try(self) -> None:
        if self.entry is not None:
            self._session.jobs.try_fixes(self.entry.file if self.entry.line else "", self.entry.line)
            self.panel_wanted.emit("breaks")

    def _copy(self) -> None:
        if self.entry is not None:
            QApplication.clipboard().setText(self.entry.as_text())


def _older(entry: Entry, document: Document) -> str:
    """The words that the graph below is from an earlier trace; empty if it is not."""
    failure = document.failure
    is_failure = failure is not None and entry.seam is None and entry.subgraph is None
    if not is_failure or failure is None or document.graph is None or failure.job == document.graph_job:
        return ""
    return tr(" this time; the graph is from an earlier trace")
