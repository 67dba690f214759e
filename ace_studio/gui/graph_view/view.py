"""`GraphView`: the canvas with its map, legend, search field and breadcrumbs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from PySide6.QtCore import QEvent, QObject, QPoint, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QMenu, QToolButton, QVBoxLayout, QWidget

from ace_studio.gui.graph_view.background import Check
from ace_studio.gui.graph_view.breadcrumbs import Breadcrumbs
from ace_studio.gui.graph_view.canvas import GraphCanvas
from ace_studio.gui.graph_view.colours import Colouring, family_colouring
from ace_studio.gui.graph_view.export import export_picture
from ace_studio.gui.graph_view.layout_note import LayoutNote
from ace_studio.gui.graph_view.legend import Legend, legend_notes
from ace_studio.gui.graph_view.menu import fill_menu, ops_of_menu
from ace_studio.gui.graph_view.minimap import Minimap
from ace_studio.gui.graph_view.picture import Picture
from ace_studio.gui.graph_view.search import SearchIndex
from ace_studio.gui.graph_view.search_bar import SearchBar
from ace_studio.gui.style.colours import DARK, Colours
from ace_studio.gui.words.formatting import plural
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.graph import GraphTable
from ace_studio.records.results import CaptureReport

OVERLAY_GAP = 12
ROWS_AT_ONCE = 2000
"""A graph of so many rows is laid out at once, in about 35 ms; a larger one in the background."""
MIN_MAP_WIDTH = 520
"""A narrower canvas shows no map and no legend, which would cover the graph."""


class GraphView(QWidget):
    """The graph of a model; see the package's documentation for how it is used."""

    selection_changed = Signal(tuple)
    """Op ids, after the user selected something."""
    op_activated = Signal(str)
    """Op id, after Enter or a double-click on an op."""
    laid_out = Signal()
    """The picture arrived that `show_graph` began to lay out in the background."""
    menu_opening = Signal(object, tuple)
    """The context menu before it is shown, and its ops; receivers may add entries."""

    def __init__(self, parent: QWidget | None = None, *, colours: Colours = DARK) -> None:
        """Start without a graph."""
        super().__init__(parent)
        self._colouring: Colouring | None = None
        self._index: SearchIndex | None = None
        self._matches: list[int] = []
        self._match = -1
        self.shows_map = True
        """Whether a map is shown where there is room for one."""
        self.canvas: GraphCanvas = GraphCanvas(self)
        self.minimap = Minimap(self.canvas)
        self.legend = Legend(self.canvas)
        self.layout_note = LayoutNote(self.canvas)
        self.search_bar = SearchBar(self)
        self.breadcrumbs = Breadcrumbs(self)
        self._buttons = [
            self._button("−", "Zoom out (-)", lambda: self.zoom_by(0.8)),  # noqa: RUF001 - a minus sign
            self._button("+", "Zoom in (+)", lambda: self.zoom_by(1.25)),
            self._button("Fit", "Show everything (Space)", self.fit),
        ]
        self._lay_out()
        self._connect()
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setFocusProxy(self.canvas)
        QWidget.setTabOrder(self.canvas, self.search_bar.field)
        self.set_theme(colours)
        self.show_graph(None)

    def _button(self, text: str, name: str, action: object) -> QToolButton:
        button = QToolButton(self)
        button.setText(text)
        button.setToolTip(name)
        button.setAccessibleName(name)
        button.setAutoRaise(True)
        button.clicked.connect(action)
        return button

    def _lay_out(self) -> None:
        self._bar = QWidget(self)
        row = QHBoxLayout(self._bar)
        row.setContentsMargins(8, 4, 8, 4)
        row.setSpacing(6)
        row.addWidget(self.breadcrumbs, 1)
        row.addWidget(self.search_bar)
        for button in self._buttons:
            row.addWidget(button)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self._bar)
        column.addWidget(self.canvas, 1)

    def _connect(self) -> None:
        canvas = self.canvas
        canvas.selected_by_user.connect(self._tell_selection)
        canvas.activated.connect(self._tell_activated)
        canvas.current_changed.connect(lambda _: self._show_position())
        canvas.scene_changed.connect(self._show_position)
        canvas.camera_moved.connect(self._show_position)
        canvas.camera_moved.connect(self._show_map)
        canvas.installEventFilter(self)
        canvas.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        canvas.customContextMenuRequested.connect(self._open_menu)
        self.legend.filter_changed.connect(self.set_filter)
        self.legend.resized.connect(self._place_overlays)
        self.breadcrumbs.block_wanted.connect(self._go_to_block)
        self.search_bar.query_changed.connect(self.search)
        self.search_bar.next_wanted.connect(self.search_next)
        self.search_bar.previous_wanted.connect(self.search_previous)
        self.search_bar.left.connect(self.canvas.setFocus)

    # The graph and how it looks

    @property
    def picture(self) -> Picture | None:
        """The picture; None without a graph."""
        return self.canvas.picture

    def show_graph(self, table: GraphTable | None, capture: CaptureReport | None = None) -> None:
        """Show a graph, or the text that there is none. The colouring does not change.

        A large graph is laid out in the background: there is no picture until `laid_out`. The report of the capture
        names breaks and subgraphs, if the graph was not captured whole.
        """
        if table is None or not len(table):
            self._show_picture(None)
            return
        colours = self.canvas.colours
        colouring = self._colouring

        def make(check: Check) -> tuple[Picture, SearchIndex]:
            picture = Picture(table, colouring or family_colouring(table, colours), capture, check=check)
            return picture, picture.search_index()

        def arrived(made: tuple[Picture, SearchIndex]) -> None:
            self._show_picture(*made)
            self.set_colouring(self._colouring)
            self.laid_out.emit()

        if len(table) <= ROWS_AT_ONCE:
            self._show_picture(Picture(table, colouring or family_colouring(table, colours), capture))
        else:
            self._show_picture(None)
            self.canvas.lay_out(
                plural(table.op_count, "op"), make, arrived, again=lambda: self.show_graph(table, capture)
            )

    def _show_picture(self, picture: Picture | None, index: SearchIndex | None = None) -> None:
        self._index, self._matches, self._match = index, [], -1
        self.canvas.show_picture(picture)
        for widget in (self.search_bar, *self._buttons):
            widget.setEnabled(picture is not None)
        if self.search_bar.field.text():
            self.search(self.search_bar.field.text())
        self._show_legend()
        self._place_overlays()
        self.canvas.show_beginning()

    def set_colouring(self, colouring: Colouring | None) -> None:
        """Colour by a property of the ops; None goes back to the kinds of ops."""
        self._colouring = colouring
        if self.picture is not None:
            self.picture.set_colouring(colouring or family_colouring(self.picture.table, self.canvas.colours))
        self._show_legend()
        self._place_overlays()
        self.canvas.update()
        self.minimap.update()

    def set_notes(self, notes: Mapping[str, tuple[str, str]]) -> None:
        """Set the second line of ops (by id), and its tooltip."""
        if self.picture is not None:
            self.picture.set_notes(notes)
            self.canvas.update()

    def set_theme(self, colours: Colours) -> None:
        """Take the colours of a theme."""
        self.canvas.colours = colours
        self.search_bar.set_colours(colours)
        self.breadcrumbs.set_colours(colours)
        self._bar.setStyleSheet(f"background: {colours.surface}")
        for button in self._buttons:
            button.setStyleSheet(
                f"QToolButton {{ color: {colours.text}; border: 1px solid transparent; border-radius: 4px;"
                " padding: 3px 9px }"
                f"QToolButton:hover, QToolButton:focus {{ border-color: {colours.accent} }}"
                f"QToolButton:disabled {{ color: {colours.text_dim} }}"
            )
        self.set_colouring(self._colouring)

    def set_filter(self, hidden: frozenset[int]) -> None:
        """Dim the ops of these categories of the colouring."""
        if self.picture is not None:
            self.picture.hidden_categories = hidden
            self.canvas.update()

    def _show_legend(self) -> None:
        if self.picture is None:
            self.legend.hide()
        else:
            picture, colours = self.picture, self.canvas.colours
            notes = legend_notes(picture.partial, colours)
            self.legend.show_colouring(picture.colouring, picture.category, colours=colours, notes=notes)

    def _place_overlays(self) -> None:
        canvas = self.canvas
        room = canvas.picture is not None and canvas.width() >= MIN_MAP_WIDTH
        self._show_map()
        self.legend.setVisible(room and self.legend.has_content and canvas.height() > self.legend.height() + 60)
        bottom = canvas.height() - OVERLAY_GAP
        legend_right = self.legend.width() + 2 * OVERLAY_GAP if self.legend.isVisible() else 0
        canvas.reserved_left = float(legend_right)
        self.minimap.move(canvas.width() - self.minimap.width() - OVERLAY_GAP, bottom - self.minimap.height())
        self.legend.move(OVERLAY_GAP, bottom - self.legend.height())

    def _show_map(self) -> None:
        """Show the map if there is room and a part of the graph is out of sight."""
        canvas = self.canvas
        room = self.shows_map and canvas.width() >= MIN_MAP_WIDTH and canvas.height() > 2 * self.minimap.height()
        self.minimap.setVisible(room and canvas.picture is not None and not canvas.shows_everything())

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        """Keep map and legend in their corners, and let Esc stop a layout."""
        if watched is self.canvas and event.type() == QEvent.Type.Resize:
            self._place_overlays()
            self.layout_note.place()
        if (
            watched is self.canvas
            and event.type() in {QEvent.Type.KeyPress, QEvent.Type.ShortcutOverride}
            and isinstance(event, QKeyEvent)
            and self.layout_note.handles(event)
        ):
            event.accept()
            return True
        return super().eventFilter(watched, event)

    # Moving around

    def fit(self) -> None:
        """Show the whole graph."""
        self.canvas.fit()

    def zoom_by(self, factor: float) -> None:
        """Zoom about the middle."""
        self.canvas.zoom(factor)

    def reveal(self, op_id: str) -> None:
        """Open what hides an op and scroll to it; does nothing for an unknown id."""
        if self.picture is None:
            return
        for row in self.picture.rows_of([op_id]):
            self._reveal_row(row)

    def _reveal_row(self, row: int) -> None:
        picture = self.picture
        if picture is None:
            return
        if not picture.row_visible(row):
            shown = int(picture.scene.stands_for[row])
            chain = [node for node in picture.tree.chain(row)[1:] if not picture.arrangement.is_open(node)]
            self.canvas.set_open(chain, to=True, anchor=shown, then=lambda: self._go_to_row(row))
        else:
            self._go_to_row(row)

    def _go_to_row(self, row: int) -> None:
        self.canvas.set_current(row)
        self.canvas.show_node(row)

    def open_block(self, path: str) -> None:
        """Open a block, and what hides it, by its module path."""
        block = self.picture.tree.block_of_path(path) if self.picture is not None else None
        if block is not None and self.picture is not None:
            shown = next(node for node in self.picture.tree.chain(block) if self.picture.scene.visible[node])
            self.canvas.set_open(self.picture.tree.chain(block), to=True, anchor=shown)

    def close_block(self, path: str) -> None:
        """Close a block by its module path."""
        block = self.picture.tree.block_of_path(path) if self.picture is not None else None
        if block is not None:
            self.canvas.set_open([block], to=False)

    def _go_to_block(self, block: int) -> None:
        if self.picture is not None:
            self.canvas.set_current(block)
            self.canvas.frame([block])

    def _show_position(self) -> None:
        picture = self.picture
        if picture is None:
            self.breadcrumbs.show_chain(())
            return
        node = self.canvas.current
        if node < 0:
            middle = self.canvas.camera.to_scene(self.canvas.width() / 2, self.canvas.height() / 2)
            node = picture.frame_at(*middle)
        chain = picture.tree.chain(node) if node >= 0 else [picture.tree.root]
        names = tuple((at, picture.titles(at)[0]) for at in reversed(chain))
        self.breadcrumbs.show_chain(names)

    # Selection

    @property
    def selected_ops(self) -> tuple[str, ...]:
        """Ids of the selected ops, in execution order."""
        return self.canvas.selected_ops

    def set_selection(self, op_ids: Sequence[str]) -> None:
        """Select these ops; no signal, nothing scrolls. Unknown ids are left out."""
        if self.picture is not None:
            self.picture.selected[:] = False
            self.picture.selected[self.picture.rows_of(op_ids)] = True
            self.canvas.describe()
            self.canvas.update()

    def _tell_selection(self) -> None:
        self.selection_changed.emit(self.selected_ops)

    def _tell_activated(self, row: int) -> None:
        if self.picture is not None:
            self.op_activated.emit(self.picture.table.op_id[row])

    # Search

    def focus_search(self) -> None:
        """Put the keyboard into the search field."""
        self.search_bar.field.setFocus()
        self.search_bar.field.selectAll()

    def search(self, query: str) -> tuple[str, ...]:
        """Mark the ops that match; see `search.SearchIndex` for the language. Nothing scrolls."""
        picture = self.picture
        if picture is None:
            return ()
        if self._index is None and query.strip():
            self._index = picture.search_index()
        problem = ""
        try:
            self._matches = self._index.find(query) if self._index is not None else []
        except re.error as error:
            self._matches, problem = [], f"not a pattern: {error.msg}"
        self._match = -1
        picture.matched[:] = False
        picture.matched[self._matches] = True
        self.search_bar.show_count(0, len(self._matches), problem=problem)
        self.canvas.update()
        return tuple(picture.table.op_id[row] for row in self._matches)

    def search_next(self) -> None:
        """Go to the next match and select it."""
        self._go_to_match(self._match + 1)

    def search_previous(self) -> None:
        """Go to the previous match and select it."""
        self._go_to_match(self._match - 1 if self._match >= 0 else -1)

    def _go_to_match(self, match: int) -> None:
        if self._matches:
            self._match = match % len(self._matches)
            row = self._matches[self._match]
            self._reveal_row(row)
            self.canvas.select([row])
            self.search_bar.show_count(self._match + 1, len(self._matches))

    # Menu and files

    def _open_menu(self, place: QPoint) -> None:
        if self.picture is not None:
            self.menu_at(place).popup(self.canvas.mapToGlobal(place))

    def menu_at(self, place: QPoint) -> QMenu:
        """The context menu at a place of the canvas. It deletes itself when closed."""
        picture = self.picture
        node = picture.node_at(*self.canvas.camera.to_scene(place.x(), place.y())) if picture is not None else -1
        menu = fill_menu(self.canvas, node)
        self.menu_opening.emit(menu, ops_of_menu(self.canvas, node))
        return menu

    def export(self, path: Path) -> None:
        """Save what is open now as .svg, .pdf or .png.

        Raises:
            AceError: If the ending is unknown, the file cannot be written, or there is no graph.
        """
        if self.picture is None:
            raise AceError.of(
                ErrorCode.USAGE,
                "there is no graph to save",
                why="no model has been traced yet",
                remedy="trace a model first",
                where=str(path),
            )
        export_picture(self.picture, path, colours=self.canvas.colours)
