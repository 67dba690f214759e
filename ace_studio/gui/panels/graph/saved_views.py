"""Named views of the graph: which blocks are open, what is in sight, and the colours. They are kept for each model."""

from collections.abc import Callable
from functools import partial

import msgspec
from PySide6.QtWidgets import QLineEdit, QMenu, QToolButton, QWidgetAction

from ace_studio.gui.graph_view.surface import GraphSurface
from ace_studio.gui.style import tr
from ace_studio.session.session import Session


class ViewState(msgspec.Struct, frozen=True):
    """What is open and in sight."""

    open: tuple[str, ...]
    """Module paths of the open blocks."""
    scale: float
    x: float
    """Of the point of the scene in the middle of the view."""
    y: float


def state_of(surface: GraphSurface) -> ViewState | None:
    """The present state; None without a graph."""
    picture, camera = surface.picture, surface.camera
    if picture is None:
        return None
    tree, arrangement = picture.tree, picture.arrangement
    opened = (block for block in arrangement.inner_blocks(tree.root) if arrangement.is_open(block))
    x, y = camera.to_scene(surface.width() / 2, surface.height() / 2)
    return ViewState(open=tuple(tree.paths[block - tree.root] for block in opened), scale=camera.scale, x=x, y=y)


def show_state(surface: GraphSurface, state: ViewState) -> None:
    """Open what was open, close the rest, and go there. Blocks that the graph does not have are left out."""
    picture, camera = surface.picture, surface.camera
    if picture is None:
        return
    tree = picture.tree
    blocks = picture.arrangement.inner_blocks(tree.root)
    wanted = {tree.block_of_path(path) for path in state.open}

    def go_there() -> None:
        camera.scale = state.scale
        camera.center_on(state.x, state.y, width=surface.width(), height=surface.height())
        surface.moved_from_outside()

    surface.set_open([block for block in blocks if block not in wanted], to=False)
    surface.set_open([block for block in blocks if block in wanted], to=True, then=go_there)


class SavedView(msgspec.Struct, frozen=True):
    """One view under its name."""

    name: str
    colour_by: str
    """Id of a row of `COLOURINGS`."""
    state: ViewState


class SavedViews(QToolButton):
    """A button with a menu: go to a view, save this one under a name, remove one."""

    def __init__(self, session: Session, surface: GraphSurface, colour_by: Callable[[], str]) -> None:
        """``colour_by`` gives the present colouring; `chosen` is what to call with that of a view."""
        super().__init__(autoRaise=True, popupMode=QToolButton.ToolButtonPopupMode.InstantPopup)
        self._session, self._surface, self._colour_by = session, surface, colour_by
        self.chosen: Callable[[str], object] = bool
        self.setAccessibleName(tr("Views"))
        self.setProperty("role", "menu")
        self.setToolTip(tr("Go to a saved view of this graph, or save this one"))
        self.setMenu(QMenu(self))
        self.menu().aboutToShow.connect(self._fill)

    @property
    def _key(self) -> str:
        document = self._session.document
        return f"views: {document.folder}/{document.recipe.model.source}"

    def saved(self) -> list[SavedView]:
        """The views of the present model, in the order of saving."""
        try:
            return msgspec.convert(self._session.settings.recall(self._key) or [], list[SavedView])
        except msgspec.ValidationError:
            return []  # the file was edited by hand

    def save(self, name: str) -> None:
        """Keep the present view; one of the same name is replaced."""
        state = state_of(self._surface)
        if name.strip() and state is not None:
            made = SavedView(name=name.strip(), colour_by=self._colour_by(), state=state)
            self._keep([*(one for one in self.saved() if one.name != made.name), made])
        self.menu().close()

    def show_view(self, wanted: SavedView) -> None:
        """Open and close blocks, colour, and go there."""
        self.chosen(wanted.colour_by)
        show_state(self._surface, wanted.state)

    def _keep(self, views: list[SavedView]) -> None:
        with self._session.reporting():
            self._session.settings.remember(self._key, msgspec.to_builtins(views))

    def _fill(self) -> None:
        menu, views = self.menu(), self.saved()
        menu.clear()
        for one in views:
            menu.addAction(one.name.replace("&", "&&"), partial(self.show_view, one))
        menu.addSeparator()
        field = QLineEdit(placeholderText=tr("Save this view as…"))
        field.setAccessibleName(tr("Name of this view"))
        field.returnPressed.connect(lambda: self.save(field.text()))
        typed = QWidgetAction(menu)
        typed.setDefaultWidget(field)
        menu.addAction(typed)
        if views:
            removal = menu.addMenu(tr("Remove"))
            for one in views:
                others = [other for other in views if other is not one]
                removal.addAction(one.name.replace("&", "&&"), partial(self._keep, others))
