"""The window: menus, toolbar, bars, the start page or the workbench, and the status line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import PurePath
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QMimeData, QSize, Qt, QTimer
from PySide6.QtGui import (
    QCloseEvent,
    QDragEnterEvent,
    QDragLeaveEvent,
    QDropEvent,
    QKeySequence,
    QPaintEvent,
    QResizeEvent,
    QShortcut,
)
from PySide6.QtWidgets import QMainWindow, QMenu, QStackedWidget, QToolBar

from ace_studio.gui.shell.actions import Actions
from ace_studio.gui.shell.bars import Bars
from ace_studio.gui.shell.commands import Commands
from ace_studio.gui.shell.panel_table import Area
from ace_studio.gui.shell.start_page import EngineCard, StartPage
from ace_studio.gui.shell.status_line import StatusLine
from ace_studio.gui.shell.steps import StepLine
from ace_studio.gui.style import Theme, tr
from ace_studio.gui.widgets.fields import FieldUndo
from ace_studio.gui.widgets.kept_geometry import keep_geometry, restore_geometry
from ace_studio.gui.widgets.layouts import box, column
from ace_studio.gui.widgets.small import fit_screen, label
from ace_studio.gui.widgets.tab_order import go_to_neighbour
from ace_studio.records.errors import AceError, one_line
from ace_studio.session.document import Document, JobKind, Part
from ace_studio.session.session import Session

if TYPE_CHECKING:
    from ace_studio.gui.shell.workbench import Workbench

REFRESH_MS = 12
"""Changes that come within this time are shown together: a flood of log lines is one repaint."""
WHY_MS = 4000
"""Time for which the status line says why a key does nothing now."""
_DROP_HINT = QSize(420, 96)


class MainWindow(QMainWindow):
    """The main window. It passes changes of the document to its parts."""

    def __init__(self, session: Session, theme: Theme, *, on_first_paint: Callable[[], object] = lambda: None) -> None:
        super().__init__()
        self.session = session
        self.theme = theme
        self._on_first_paint: Callable[[], object] | None = on_first_paint
        self._workbench: Workbench | None = None
        self._pending: frozenset[Part] = frozenset(Part)
        self._last_verb = JobKind.NONE
        self._is_leaving = False
        """Whether the window closes whatever goes on."""
        self._words_px = 0
        """Width of the toolbar with words."""
        self._refresh_timer = QTimer(self, singleShot=True, interval=REFRESH_MS)
        self._refresh_timer.timeout.connect(self._refresh)
        self._history_timer = QTimer(self, interval=1000)
        self._history_timer.timeout.connect(session.history.retry)
        self.commands = commands = Commands(self, session, theme, workbench=self._bring_workbench)
        self.actions_ = Actions(self, commands, say=lambda words: self.statusBar().showMessage(words, WHY_MS))
        self.bars = Bars(
            session, theme, commands.installer, show_panel=commands.show_panel, install_engine=commands.install_engine
        )
        trust = ("trust", "trust-folder", "trust-for-now", "withdraw-trust")
        self.step_line = StepLine(commands.step_actions(), {"trust": [self.actions_.by_id[each] for each in trust]})
        self.engine_card = EngineCard(
            commands.installer,
            install_pack=commands.install_engine,
            make_online=commands.make_engine_online,
            choose_python=lambda: commands.show_dialog("engine_host", session),
        )
        self.start_page = StartPage(
            session,
            theme,
            open_dialog=commands.open_dialog,
            open_example=commands.open_example,
            start_tour=self._start_tour,
            engine_card=self.engine_card,
        )
        self.status_line = StatusLine(session, theme)
        self._pages = QStackedWidget()
        commands.about_to_open.connect(self.bars.offer_return)
        commands.palette_asked.connect(self._open_palette)
        commands.tour_asked.connect(self._start_tour)
        commands.fill_asked.connect(self._toggle_fill)
        self._escape = QShortcut(QKeySequence(Qt.Key.Key_Escape), self, self._toggle_fill, enabled=False)
        self._assemble()
        FieldUndo(theme.application, self)
        theme.changed.connect(self.actions_.restyle)
        self.actions_.restyle(theme.colours)
        session.subscribe(self._document_changed)
        fit_screen(self, 1280, 800)
        restore_geometry(self, session.settings, "geometry")
        self._refresh()
        self.bars.offer_restore()

    def _assemble(self) -> None:
        self.setAcceptDrops(True)
        self.setMinimumSize(480, 320)
        self._recent_menu = QMenu(tr("Open &recent"), self)
        self._recent_menu.aboutToShow.connect(self._fill_recent)
        self.actions_.fill_menus(self.menuBar(), self._recent_menu)
        self.toolbar = QToolBar(tr("Toolbar"), movable=False)
        self.toolbar.setObjectName("toolbar")
        self.toolbar.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.actions_.fill_toolbar(self.toolbar)
        self.addToolBar(self.toolbar)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.NoContextMenu)
        self._pages.addWidget(self.start_page)
        self.setCentralWidget(box(column(self.step_line, self.bars, self._pages, gap=0, stretch=2)))
        self.statusBar().setSizeGripEnabled(False)
        self.statusBar().addWidget(self.status_line, 1)
        self.drop_hint = label("", "drop")
        self.drop_hint.setParent(self)
        self.drop_hint.setProperty("over", "true")
        self.drop_hint.setProperty("weight", "strong")
        self.drop_hint.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.drop_hint.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)  # a drag goes to the window
        self.drop_hint.setFixedSize(_DROP_HINT)
        self.drop_hint.hide()

    # --- the document ---

    def _document_changed(self, document: Document, parts: frozenset[Part]) -> None:
        del document
        self._pending |= parts
        if not self._refresh_timer.isActive():
            self._refresh_timer.start()

    def _refresh(self) -> None:
        document, parts = self.session.document, self._pending
        self._pending = frozenset()
        self.setWindowTitle(f"{one_line(document.title)}[*] – ACE Studio" if document.title else "ACE Studio")
        self.setWindowModified(document.is_dirty)
        self.actions_.update_from(document)
        self.step_line.update_from(document)
        self.bars.update_from(document)
        self.status_line.update_from(document)
        if document.history_waits != self._history_timer.isActive():
            self._history_timer.start() if document.history_waits else self._history_timer.stop()
        if Part.SETTINGS in parts:
            self.theme.choose(str(self.session.settings.get("theme")))
        self.engine_card.update_from(document)
        self.start_page.refresh(document, parts)
        if document.recipe.model.source:
            self._bring_workbench().refresh(document, parts)
            self._follow_work(document)

    def _follow_work(self, document: Document) -> None:
        """Show the Run panel when a run starts, and the results when it ends."""
        verb = document.activity.verb if document.activity.is_working else JobKind.NONE
        if verb is not self._last_verb:
            if verb is JobKind.RUN:
                self.commands.show_panel("run")
            elif (
                self._last_verb is JobKind.RUN
                and self._is_front("run")
                and document.result is not None
                and not document.is_result_earlier
            ):
                self.commands.show_panel("results")
            self._last_verb = verb

    def _is_front(self, panel_id: str) -> bool:
        return panel_id in {self.workbench.current(place) for place in Area}

    def _bring_workbench(self) -> Workbench:
        self._pages.setCurrentWidget(self.workbench)
        return self.workbench

    @property
    def workbench(self) -> Workbench:
        """The panels, made at the first call."""
        if self._workbench is None:
            from ace_studio.gui.shell.workbench import Workbench  # noqa: PLC0415 - not needed for the first picture

            self._workbench = Workbench(self.session, self.theme)
            self._workbench.about_to_open.connect(self.bars.offer_return)
            self._workbench.filled.connect(self._show_filled)
            self._workbench.dialog_wanted.connect(lambda name, given: self.commands.show_dialog(name, *given))
            self._pages.addWidget(self._workbench)
            layout = self.session.settings.recall("layout")
            if isinstance(layout, dict):
                self._workbench.restore_layout(layout)
        return self._workbench

    def _open_palette(self) -> None:
        from ace_studio.gui.shell.palette import CommandPalette  # noqa: PLC0415 - loaded when it is needed

        CommandPalette(lambda: self.actions_.palette_entries(self.session.document), self).open()

    def _start_tour(self) -> None:
        from ace_studio.gui.shell.tour import Tour  # noqa: PLC0415 - loaded when it is needed

        if not self.session.document.recipe.model.source:
            self.commands.open_example()
            self._refresh()
        for earlier in self.findChildren(Tour):
            earlier.close()
        Tour(self).go(0)

    def _toggle_fill(self) -> None:
        self.workbench.toggle_fill()

    def _show_filled(self, is_filled: bool) -> None:
        """Leave the whole window to the panel that fills it."""
        self.toolbar.setVisible(not is_filled)
        self.step_line.setHidden(is_filled)
        self.statusBar().setVisible(not is_filled)
        # Esc ends this first; after that it cancels a job again.
        self._escape.setEnabled(is_filled)
        self.actions_.by_id["cancel"].setShortcut(QKeySequence() if is_filled else QKeySequence(Qt.Key.Key_Escape))

    def _fill_recent(self) -> None:
        self._recent_menu.clear()
        for path in self.session.settings.recent_files:
            gone = self.session.files.is_gone(path)
            action = self._recent_menu.addAction(tr("{path} (no longer there)", path=path) if gone else path)
            action.triggered.connect(lambda _=False, to=path: self.commands.open_path(to))
            action.setEnabled(not gone)
        if self._recent_menu.isEmpty():
            self._recent_menu.addAction(tr("Nothing yet")).setEnabled(False)

    # --- look and life ---

    def focusNextPrevChild(self, next: bool) -> bool:  # noqa: N802 - Qt's name
        """Tab goes through the window as one reads it."""
        return go_to_neighbour(self, forward=next)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Call ``on_first_paint`` once: the engine starts after that."""
        super().paintEvent(event)
        if self._on_first_paint is not None:
            QTimer.singleShot(0, self._on_first_paint)
            self._on_first_paint = None

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Show only icons in the toolbar of a narrow window."""
        super().resizeEvent(event)
        style = self.toolbar.toolButtonStyle()
        if style is Qt.ToolButtonStyle.ToolButtonTextBesideIcon:
            self._words_px = self.toolbar.sizeHint().width()
        is_wide = self.width() >= self._words_px
        wanted = Qt.ToolButtonStyle.ToolButtonTextBesideIcon if is_wide else Qt.ToolButtonStyle.ToolButtonIconOnly
        if style is not wanted:
            self.toolbar.setToolButtonStyle(wanted)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:  # noqa: N802 - Qt's name
        """Accept files."""
        if paths := _dropped_paths(event.mimeData()):
            event.acceptProposedAction()
            self._show_drop(paths)

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:  # noqa: N802 - Qt's name
        """Nothing is dragged over the window any more."""
        super().dragLeaveEvent(event)
        self._show_drop(())

    def dropEvent(self, event: QDropEvent) -> None:  # noqa: N802 - Qt's name
        """Open the file; Python code may come with its weights."""
        self._show_drop(())
        paths = _dropped_paths(event.mimeData())
        if paths:
            event.acceptProposedAction()
            self.commands.open_path(*paths)

    def _show_drop(self, paths: Sequence[str]) -> None:
        """Say what would be opened: the start page has a place for it, an open model gets a card in front of it."""
        self.start_page.set_hot(bool(paths))
        self.drop_hint.setText(tr("Drop to open {names}", names=", ".join(PurePath(path).name for path in paths)))
        self.drop_hint.move(self.rect().center() - self.drop_hint.rect().center())
        self.drop_hint.setVisible(bool(paths) and not self.start_page.isVisible())
        self.drop_hint.raise_()

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Look at the recipe's file when the user comes back to the window."""
        super().changeEvent(event)
        if event.type() is QEvent.Type.ActivationChange and self.isActiveWindow():
            QTimer.singleShot(0, self.commands.check_disk)

    def leave(self) -> None:
        """Close the window without a question."""
        self._is_leaving = True
        self.close()

    def closeEvent(self, event: QCloseEvent) -> None:  # noqa: N802 - Qt's name
        """Ask before long work ends; keep the layout. Unsaved choices are remembered, and offered at the next start."""
        if not self._is_leaving and self._ask_to_leave():
            event.ignore()
            return
        self.commands.installer.stop()
        keep_geometry(self, self.session.settings, "geometry")
        if self._workbench is not None:
            with suppress(AceError):  # the layout is not worth a message while the window closes
                self.session.settings.remember("layout", self.workbench.save_layout())
            self.workbench.hide_windows()
        self.session.close()
        super().closeEvent(event)

    def _ask_to_leave(self) -> bool:
        from ace_studio.gui.dialogs.leave import work_words  # noqa: PLC0415 - not needed for the first picture

        is_asked = bool(work_words(self.session.document))
        if is_asked:
            self.commands.show_dialog("leave", self.session).accepted.connect(self.leave)
        return is_asked


def _dropped_paths(mime: QMimeData) -> list[str]:
    return [url.toLocalFile() for url in mime.urls() if url.isLocalFile()]
