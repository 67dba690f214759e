"""`GraphView`: the canvas with its map, legend, search field and breadcrumbs."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from PySide6.QtCore import QEvent, QObject, QPoint, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QMenu, QWidget

from ace_studio.gui.graph_view.background import Check
from ace_studio.gui.graph_view.bars import Breadcrumbs, LayoutNote, SearchBar
from ace_studio.gui.graph_view.canvas import GraphCanvas
from ace_studio.gui.graph_view.colours import Colouring, family_colouring
from ace_studio.gui.graph_view.export import export_picture
from ace_studio.gui.graph_view.legend import Legend, legend_notes
from ace_studio.gui.graph_view.menu import fill_menu, ops_of_menu
from ace_studio.gui.graph_view.minimap import Minimap
from ace_studio.gui.graph_view.picture import Picture
from ace_studio.gui.graph_view.search import ValuesOf, search_index
from ace_studio.gui.style import DARK, Colours, tr
from ace_studio.gui.widgets.layouts import CLOSE, GAP, TIGHT, box, column, row
from ace_studio.gui.widgets.small import tool_button
from ace_studio.gui.words.formatting import plural
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.graph import GraphTable
from ace_studio.records.results import CaptureReport, GraphBreak

OVERLAY_GAP = 12
ROWS_AT_ONCE = 2000
MOST_ROWS_UNASKED = 300_000
"""A layout of more takes minutes and gigabytes; see resources/help/limits.md."""
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
        super().__init__(parent, focusPolicy=Qt.FocusPolicy.StrongFocus)
        self._colouring: Colouring | None = None
        self.values: ValuesOf = lambda _: ()
        """Figures of the ops, for the search."""
        self._breaks: Sequence[GraphBreak] = ()
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
            tool_button(tr("Zoom out (-)"), lambda: self.zoom_by(0.8), text="−"),  # noqa: RUF001 - a minus sign
            tool_button(tr("Zoom in (+)"), lambda: self.zoom_by(1.25), text="+"),
            tool_button(tr("Show everything (Space)"), self.fit, text=tr("Fit")),
        ]
        self._bar = box(
            row(
                self.breadcrumbs, self.search_bar, *self._buttons, margin=(GAP, TIGHT, GAP, TIGHT), gap=CLOSE, stretch=0
            )
        )
        self.setLayout(column(self._bar, self.canvas, gap=0, stretch=1))
        self._connect()
        self.setFocusProxy(self.canvas)
        QWidget.setTabOrder(self.canvas, self.search_bar.field)
        self._set_selection: tuple[Sequence[str], np.ndarray] = ((), np.zeros(0, dtype=np.int64))
        """What `set_selection` was called with last, and its rows."""
        self.set_theme(colours)
        self.show_graph(None)

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
        breaks = self._breaks = () if capture is None else capture.graph_breaks

        def make(check: Check) -> Picture:
            search_index(table, breaks).find("any", lambda _: ())
            return Picture(table, colouring or family_colouring(table, colours), capture, check=check)

        def arrived(picture: Picture) -> None:
            self._show_picture(picture)
            self.set_colouring(self._colouring)
            self.laid_out.emit()

        if len(table) <= ROWS_AT_ONCE:
            self._show_picture(Picture(table, colouring or family_colouring(table, colours), capture))
        else:
            self._show_picture(None)
            what = plural(table.op_count, "op")

            def lay_out() -> None:
                self.canvas.lay_out(what, make, arrived, again=lay_out)

            if len(table) > MOST_ROWS_UNASKED:
                self.canvas.offer_layout(what, lay_out)
            else:
                lay_out()

    def _show_picture(self, picture: Picture | None) -> None:
        self._matches, self._match = [], -1
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
        is_press = event.type() in {QEvent.Type.KeyPress, QEvent.Type.ShortcutOverride} and isinstance(event, QKeyEvent)
        if watched is self.canvas and is_press and self.layout_note.handles(event):  # type: ignore[arg-type]
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
        for at in self.picture.rows_of([op_id]):
            self._reveal_row(at)

    def _reveal_row(self, row: int) -> None:
        def go_there() -> None:
            self.canvas.set_current(row)
            self.canvas.show_node(row)

        picture = self.picture
        if picture is not None:
            closed = [node for node in picture.tree.chain(row)[1:] if not picture.arrangement.is_open(node)]
            self.canvas.set_open(closed, to=True, anchor=int(picture.scene.stands_for[row]), then=go_there)

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
        self.breadcrumbs.show_chain(tuple((at, picture.titles(at)[0]) for at in reversed(chain)))

    # Selection

    @property
    def selected_ops(self) -> tuple[str, ...]:
        """Ids of the selected ops, in execution order."""
        return self.canvas.selected_ops

    def set_selection(self, op_ids: Sequence[str]) -> None:
        """Select these ops; no signal, nothing scrolls. Unknown ids are left out."""
        if self.picture is not None:
            rows = np.array(self.picture.rows_of(op_ids), dtype=np.int64)
            self.picture.selected[:] = False
            self.picture.selected[rows] = True
            self._set_selection = op_ids, rows
            self.canvas.describe()
            self.canvas.update()

    def has_selected(self, op_ids: tuple[str, ...]) -> bool:
        """Whether these ops are selected, and no others."""
        set_ids, rows = self._set_selection
        if self.picture is None or op_ids is not set_ids:  # writing the names of 50,000 ops takes longer than a look
            return self.selected_ops == op_ids
        selected = self.picture.selected
        return np.count_nonzero(selected) == len(rows) == len(op_ids) and bool(selected[rows].all())

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
        """Mark the ops that match; see `search` for the grammar. Nothing scrolls."""
        picture = self.picture
        if picture is None:
            return ()
        found, problem = search_index(picture.table, self._breaks).find(query, self.values)
        picture.matched[:] = found if query.strip() else False
        self._matches, self._match = np.flatnonzero(picture.matched).tolist(), -1
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
                tr("there is no graph to save"),
                why=tr("no model has been traced yet"),
                remedy=tr("trace a model first"),
                where=str(path),
            )
        export_picture(self.picture, path, colours=self.canvas.colours)
