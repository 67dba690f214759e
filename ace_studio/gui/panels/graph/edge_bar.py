"""The bar above the graph while edges are highlighted: what they are, with buttons to step through them."""

from collections.abc import Callable

from PySide6.QtWidgets import QFrame, QPushButton, QSizePolicy

from ace_studio.gui.graph_view import GraphView
from ace_studio.gui.style import tr
from ace_studio.gui.widgets.layouts import CLOSE, GAP, TIGHT, row
from ace_studio.gui.widgets.small import ElidedLabel, button
from ace_studio.gui.words.formatting import plural
from ace_studio.session.document import Document, EdgeChoice
from ace_studio.session.session import Session


class EdgeBar(QFrame):
    """Follows `Selection.edges`; hidden while there are none."""

    def __init__(self, session: Session, view: GraphView) -> None:
        super().__init__()
        self._session, self._view = session, view
        self._shown: EdgeChoice | None = None
        self._at = -1
        self.words = ElidedLabel()
        self.words.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self.previous = self._button("‹", lambda: self._step(-1), tr("The previous edge"))  # noqa: RUF001
        self.next = self._button("›", lambda: self._step(1), tr("The next edge"))  # noqa: RUF001
        self.open = self._button(tr("Open blocks"), self._open_all, tr("Open the blocks that hide some of these edges"))
        self.back = self._button(
            tr("Show all edges"), lambda: session.view.look_at_edges(None), tr("Back to the whole graph (Esc)")
        )
        self.setProperty("bar", "info")
        line = row(
            self.words,
            self.previous,
            self.next,
            self.open,
            self.back,
            gap=CLOSE,
            margin=(GAP, TIGHT, GAP, TIGHT),
            stretch=0,
        )
        self.setLayout(line)
        view.canvas.scene_changed.connect(self._say)
        view.canvas.edges_dismissed.connect(lambda: session.view.look_at_edges(None))
        self.hide()

    def _button(self, text: str, action: Callable[[], object], tip: str) -> QPushButton:
        made = button(text, action, tip=tip)
        made.setAccessibleName(tip)
        return made

    def update_from(self, document: Document, *, is_new_graph: bool = False) -> None:
        """Highlight the edges of the document. Called after the graph is up to date."""
        wanted = document.selection.edges
        if wanted is self._shown and not is_new_graph:
            return
        self._shown, self._at = wanted, -1
        picture = self._view.picture
        if picture is not None:
            picture.look_at_edges(wanted.edges if wanted else ())
            self._view.canvas.update()
        self.setVisible(wanted is not None and picture is not None)
        self._say()

    def _say(self) -> None:
        picture, choice = self._view.picture, self._shown
        if choice is None or picture is None or picture.edges is None:
            return
        hidden = picture.edges.hidden(picture.scene)
        parts = [f"{plural(len(choice.edges), 'edge')} {choice.words}"]
        if self._at >= 0:
            source, target = choice.edges[self._at]
            parts.append(f"{self._at + 1}: {source} → {target}")
        elif hidden:
            parts.append(tr("{hidden} inside closed blocks", hidden=hidden))
        self.words.setText("  ·  ".join(parts))
        self.open.setVisible(bool(hidden))

    def _step(self, step: int) -> None:
        """Go to another edge: open the blocks that hide it, and show both ends."""
        choice, picture = self._shown, self._view.picture
        if choice is None or picture is None:
            return
        at = self._at + step if self._at >= 0 or step > 0 else -1
        self._at = at % len(choice.edges)
        rows = picture.rows_of(choice.edges[self._at])
        self._open(rows, then=lambda: self._view.canvas.frame(rows, at_most=1.0))
        self._session.view.select(choice.edges[self._at])
        self._say()

    def _open_all(self) -> None:
        picture = self._view.picture
        if picture is not None and picture.edges is not None:
            is_hidden = picture.scene.stands_for[picture.edges.source] == picture.scene.stands_for[picture.edges.target]
            hidden = picture.edges.source[is_hidden].tolist() + picture.edges.target[is_hidden].tolist()
            self._open(hidden, then=self._view.fit)

    def _open(self, rows: list[int], *, then: Callable[[], object] = bool) -> None:
        """Open every block around these rows."""
        picture = self._view.picture
        if picture is None or not rows:
            return
        closed = {
            block: None
            for one in rows
            for block in picture.tree.chain(one)[1:]
            if not picture.arrangement.is_open(block)
        }
        anchor = int(picture.scene.stands_for[rows[0]])
        self._view.canvas.set_open(list(closed), to=True, anchor=anchor, then=then)
