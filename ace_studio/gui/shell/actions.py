"""All actions, as rows. Menus, toolbar, shortcuts and the command palette are built from them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from PySide6.QtGui import QAction, QKeySequence, QShortcut
from PySide6.QtWidgets import QMenu, QMenuBar, QToolBar, QWidget

from ace_studio.gui.shell.commands import Commands
from ace_studio.gui.shell.panel_table import PANELS, Area
from ace_studio.gui.style import THEMES, Colours, stroke_icon, tr, translate_fields
from ace_studio.gui.words.steps import no_artifact, why_fixed, why_not, why_not_asked
from ace_studio.records.recipes.plan import Precision
from ace_studio.session.comparison.sides import NAMES
from ace_studio.session.document import Document, EngineState

Command = Callable[[Commands], object]
_COMPARE = "Compare &A and B"
MENUS = ("&File", "&Edit", "E&ngine", "&View", "&Help")


def _never(document: Document) -> str:
    del document
    return ""


def _no_model(document: Document) -> str:
    return "" if document.recipe.model.source else "Open a model first"


def _no_graph(document: Document) -> str:
    return "" if document.graph is not None else "Trace the model first"


def _no_start(document: Document) -> str:
    return _no_model(document) or why_not(document)


def _no_trace(document: Document) -> str:
    return _no_model(document) or why_not_asked(document)


def _no_run(document: Document) -> str:
    """A run can wait for its turn."""
    return _no_trace(document) if document.read_only or not document.activity.is_working else ""


def _no_breaks(document: Document) -> str:
    is_broken = document.capture is not None and bool(document.capture.graph_breaks)
    return _no_start(document) or ("" if is_broken or document.failure is not None else "Nothing broke the capture")


def _no_pair(document: Document) -> str:
    return "" if all(document.pins) else "Pin something as A and as B first"


def _no_work(document: Document) -> str:
    activity = document.activity
    is_running = activity.is_working and activity.state is not EngineState.CANCELLING
    return "" if is_running or document.wished else "The engine is doing nothing"


def _no_selection(document: Document) -> str:
    return "" if document.selection.op_ids else "Select ops first"


def _no_precision(document: Document) -> str:
    return why_fixed(document) or _no_selection(document)


def _no_code(document: Document) -> str:
    return "" if document.file is not None and document.file.trust == "code" else "It holds no code"


def _no_trusted_code(document: Document) -> str:
    runs_code = document.file is not None and document.file.trust == "code" and document.is_trusted
    return "" if runs_code else "No code was trusted"


@dataclass(frozen=True, kw_only=True)
class ActionRow:
    """One action."""

    id: str
    text: str
    run: Command
    menu: str = ""
    """Set in `ACTIONS`."""
    submenu: str = ""
    shortcut: str = ""
    icon: str = ""
    blocked: Callable[[Document], str] = _never
    """Why it cannot be done now; empty if it can."""
    key_says_why: bool = False
    """Whether its key says so too: Qt drops the key of an action that is disabled."""
    label: Callable[[Document], str] | None = None
    """A text that depends on the document."""
    in_toolbar: bool = False
    starts_group: bool = False
    """A line above it in the menu, and before it in the toolbar."""
    tip: str = ""

    def __post_init__(self) -> None:
        translate_fields(self, "text", "submenu", "tip")


def _set_precision(precision: Precision | None) -> Command:
    def run(commands: Commands) -> None:
        session = commands.session
        session.plan.set_precision_of_ops(session.document.selection.op_ids, precision)

    return run


def _show_panel(panel_id: str) -> Command:
    return lambda commands: commands.show_panel(panel_id, focus=True)


def _show_dialog(name: str) -> Command:
    return lambda commands: commands.show_dialog(name, commands.session)


def _pin_shown(side: int) -> Command:
    return lambda commands: commands.session.comparing.pin_shown(side)


def _pin_file(side: int) -> Command:
    return lambda commands: commands.pin_file(side)


def _set_theme(name: str) -> Command:
    return lambda commands: commands.session.set_setting("theme", name)


def _file_rows() -> Iterator[ActionRow]:
    yield ActionRow(id="open", text="&Open…", shortcut="Ctrl+O", icon="open", in_toolbar=True, run=Commands.open_dialog,
                    tip="Open a model file or a recipe")  # fmt: skip
    yield ActionRow(id="open-folder", text="Open a &folder…", run=Commands.open_folder,
                    tip="A Hugging Face model: configuration and weights")  # fmt: skip
    yield ActionRow(id="open-named", text="Open by &name…", run=Commands.open_by_name,
                    tip="A model of timm or torchvision")  # fmt: skip
    yield ActionRow(id="example", text="Open the &example", run=Commands.open_example,
                    tip="A small network that reads handwritten digits")  # fmt: skip
    yield ActionRow(id="save", text="&Save recipe", shortcut="Ctrl+S", icon="save", in_toolbar=True, starts_group=True,
                    blocked=_no_model, run=Commands.save, tip="Save the choices as a recipe file")  # fmt: skip
    yield ActionRow(id="save-as", text="Save recipe &as…", shortcut="Ctrl+Shift+S", blocked=_no_model,
                    run=Commands.save_as)  # fmt: skip
    yield ActionRow(id="save-graph", text="Save the &graph as a picture…", icon="export", blocked=_no_graph,
                    run=Commands.save_graph, tip="Save the open part of the graph as SVG, PDF or PNG")  # fmt: skip
    yield ActionRow(id="export", text="Ex&port the artifact…", shortcut="Ctrl+E", icon="export", blocked=no_artifact,
                    key_says_why=True, run=Commands.export_artifact,
                    tip="Save the artifact of the selected run, or of the best one")  # fmt: skip
    yield ActionRow(id="settings", text="Se&ttings…", shortcut="Ctrl+,", icon="settings", starts_group=True,
                    run=Commands.open_settings)  # fmt: skip
    yield ActionRow(id="quit", text="&Quit", shortcut="Ctrl+Q", starts_group=True, run=Commands.close)


def _edit_rows() -> Iterator[ActionRow]:
    yield ActionRow(id="undo", text="&Undo", shortcut="Ctrl+Z", icon="undo", in_toolbar=True, starts_group=True,
                    blocked=lambda document: "" if document.can_undo else "Nothing to undo",
                    label=lambda document: f"{tr('&Undo')} {document.undo_label}".rstrip(),
                    run=lambda commands: commands.session.choices.undo())  # fmt: skip
    yield ActionRow(id="redo", text="&Redo", shortcut="Ctrl+Shift+Z", icon="redo", in_toolbar=True,
                    blocked=lambda document: "" if document.can_redo else "Nothing to redo",
                    label=lambda document: f"{tr('&Redo')} {document.redo_label}".rstrip(),
                    run=lambda commands: commands.session.choices.redo())  # fmt: skip
    for precision in Precision:
        yield ActionRow(id=f"precision-{precision}", text=str(precision), blocked=_no_precision,
                        submenu="&Precision of the selected ops", run=_set_precision(precision))  # fmt: skip
    yield ActionRow(id="precision-none", text="As the plan says", blocked=_no_precision,
                    submenu="&Precision of the selected ops", run=_set_precision(None))  # fmt: skip
    yield ActionRow(id="context-menu", text="&Menu of what has the keyboard", shortcut="Shift+F10", starts_group=True,
                    run=Commands.open_context_menu)  # fmt: skip
    yield ActionRow(id="select-none", text="Select &nothing", blocked=_no_selection,
                    run=lambda commands: commands.session.view.select(()))  # fmt: skip


def _engine_rows() -> Iterator[ActionRow]:
    yield ActionRow(id="trace", text="&Trace", shortcut="F5", icon="trace", in_toolbar=True, starts_group=True,
                    blocked=_no_trace, key_says_why=True, run=lambda commands: commands.session.jobs.trace(),
                    tip="Load the model and capture its graph")  # fmt: skip
    yield ActionRow(id="run", text="&Run", shortcut="F6", icon="run", in_toolbar=True, blocked=_no_run,
                    key_says_why=True,
                    label=lambda document: "&Run after this" if document.activity.is_working else "&Run",
                    run=lambda commands: commands.session.jobs.run(),
                    tip="Capture, compress, build for every target, measure, evaluate and export")  # fmt: skip
    yield ActionRow(id="scan", text="&Scan sensitivity", blocked=_no_start, run=Commands.scan_sensitivity,
                    tip="Measure how much compressing each op disturbs the outputs")  # fmt: skip
    yield ActionRow(id="catch", text="Catch &inputs…", blocked=_no_model, run=_show_dialog("catch"),
                    tip="Run a script of yours and keep the inputs of its calls as examples")  # fmt: skip
    yield ActionRow(id="cancel", text="&Cancel", shortcut="Esc", icon="cancel", in_toolbar=True, blocked=_no_work,
                    run=lambda commands: commands.session.jobs.cancel(),
                    tip="Stop what the engine is doing")  # fmt: skip
    yield ActionRow(id="trace-anew", text="Trace a&new", shortcut="Shift+F5", blocked=_no_trace, starts_group=True,
                    key_says_why=True,
                    run=lambda commands: commands.session.jobs.trace(anew=True),
                    tip="Trace although a cached capture fits")  # fmt: skip
    yield ActionRow(id="compare-methods", text="Compare all capture &methods", blocked=_no_start,
                    run=Commands.compare_methods,
                    tip="Try every capture method, to see which of them work")  # fmt: skip
    yield ActionRow(id="try-fixes", text="Try fi&xes for every break", blocked=_no_breaks, run=Commands.try_fixes,
                    tip="Each fix runs in a copy of your files; your files do not change")  # fmt: skip
    yield ActionRow(id="trust", text="Trust this &file", icon="shield", starts_group=True,
                    blocked=lambda document: "" if document.needs_trust else "No file waits for it",
                    run=lambda commands: commands.session.trust.trust_file(),
                    tip="Its code may run as it is now; after a change you are asked again")  # fmt: skip
    yield ActionRow(id="trust-folder", text="Trust everything in its f&older", blocked=_no_code,
                    run=lambda commands: commands.session.trust.trust_folder(),
                    tip="Also what is changed or added there later")  # fmt: skip
    yield ActionRow(id="trust-for-now", text="Trust it &until the window closes",
                    blocked=lambda document: "" if document.needs_trust else "No file waits for it",
                    run=lambda commands: commands.session.trust.trust_file(keep=False),
                    tip="As it is now; the next window asks again")  # fmt: skip
    yield ActionRow(id="withdraw-trust", text="Withdraw trust in this file", blocked=_no_trusted_code,
                    run=lambda commands: commands.session.trust.revoke_trust(),
                    tip="Ask again before its code runs; trust in the folder that it lies in ends too")  # fmt: skip
    yield ActionRow(id="restart-engine", text="Restart the &engine",
                    run=lambda commands: commands.session.jobs.restart_engine())  # fmt: skip
    yield ActionRow(id="engine-host", text="Engine of this &project…", blocked=_no_model,
                    run=_show_dialog("engine_host"),
                    tip="Another Python of this machine, or another machine over SSH, where the GPU is")  # fmt: skip
    yield ActionRow(id="devices", text="&Devices to measure on…", run=_show_dialog("devices"),
                    tip="This machine, hosts by SSH, and phones by adb, for finished artifacts")  # fmt: skip
    yield ActionRow(id="environment", text="&Query the engine's environment",
                    run=lambda commands: commands.session.jobs.request_environment())  # fmt: skip


def _view_rows() -> Iterator[ActionRow]:
    yield ActionRow(id="palette", text="&Command palette…", shortcut="Ctrl+K", icon="palette",
                    run=lambda commands: commands.palette_asked.emit())  # fmt: skip
    yield ActionRow(id="show-graph", text="Graph", shortcut="Alt+0", starts_group=True, blocked=_no_model,
                    run=_show_panel("graph"))  # fmt: skip
    yield ActionRow(id="find", text="&Find ops…", shortcut="Ctrl+F", blocked=_no_graph,
                    run=lambda commands: commands.show_graph("search"),
                    tip="Search the graph by name, operator, module, shape and type")  # fmt: skip
    yield ActionRow(id="compare-graph", text="Compare with what really &runs", shortcut="Ctrl+D", blocked=_no_graph,
                    run=lambda commands: commands.show_graph("compare"),
                    tip="Show or hide the graph as the selected run executes it")  # fmt: skip
    yield ActionRow(id="split-graph", text="&Split the graph", shortcut="Ctrl+\\", blocked=_no_graph,
                    run=lambda commands: commands.show_graph("split"),
                    tip="Show or hide a second view of the graph, with blocks and place of its own")  # fmt: skip
    for side, name in enumerate(NAMES):
        yield ActionRow(id=f"pin-{name}", text=tr("Pin what is shown as {name}", name=name), submenu=_COMPARE,
                        blocked=_no_model, run=_pin_shown(side),
                        tip="The run with these results, or the plan with its capture")  # fmt: skip
        yield ActionRow(id=f"pin-file-{name}", text=tr("Pin a file as {name}…", name=name), submenu=_COMPARE,
                        blocked=_no_model, run=_pin_file(side),
                        tip="A model, the result.json of a run, or a recipe")  # fmt: skip
    yield ActionRow(id="difference", text="Show the difference", submenu=_COMPARE, shortcut="Ctrl+Shift+D",
                    blocked=_no_pair, run=lambda commands: commands.session.comparing.toggle(),
                    tip="All panels show what differs between A and B, or the present again")  # fmt: skip
    for row in PANELS:
        yield ActionRow(id=f"show-{row.id}", text=row.title, submenu=row.group.words, shortcut=row.shortcut,
                        blocked=_no_model, tip=row.tip, run=_show_panel(row.id))  # fmt: skip
    yield ActionRow(id="toggle-side", text="Choices beside the graph", shortcut="Ctrl+B", starts_group=True,
                    blocked=_no_model, run=lambda commands: commands.workbench().toggle(Area.SIDE))  # fmt: skip
    yield ActionRow(id="toggle-bottom", text="Findings under the graph", shortcut="Ctrl+J", blocked=_no_model,
                    run=lambda commands: commands.workbench().toggle(Area.BOTTOM))  # fmt: skip
    yield ActionRow(id="fill", text="Fi&ll the window with this panel", shortcut="F11", blocked=_no_model,
                    run=lambda commands: commands.fill_asked.emit(),
                    tip="The graph, or the panel with the keyboard, takes all of the window; Esc returns")  # fmt: skip
    yield ActionRow(id="own-window", text="This panel in a &window of its own", shortcut="Shift+F11", blocked=_no_model,
                    run=lambda commands: commands.workbench().toggle_window(),
                    tip="The panel with the keyboard; again, or closing the window, puts it back")  # fmt: skip
    yield ActionRow(id="reset-places", text="Put all panels &back", blocked=_no_model,
                    run=lambda commands: commands.workbench().reset_places(),
                    tip="Dock every panel where it was at first")  # fmt: skip
    for theme in ("system", *THEMES):
        yield ActionRow(id=f"theme-{theme}", text=theme.replace("-", " ").capitalize(), submenu="&Theme",
                        run=_set_theme(theme))  # fmt: skip


def _help_rows() -> Iterator[ActionRow]:
    yield ActionRow(id="help", text="&Help", shortcut="F1", icon="help", run=Commands.open_help)
    yield ActionRow(id="tour", text="Take the &tour", run=lambda commands: commands.tour_asked.emit(),
                    tip="Five stops from a model to an artifact, with the example")  # fmt: skip
    yield ActionRow(id="about", text="&About ACE Studio", run=_show_dialog("about"))


_ROWS = (_file_rows, _edit_rows, _engine_rows, _view_rows, _help_rows)
ACTIONS = tuple(replace(row, menu=menu) for menu, rows in zip(MENUS, _ROWS, strict=True) for row in rows())


class Actions:
    """The Qt actions made from the rows, updated as the document changes."""

    def __init__(self, window: QWidget, commands: Commands, *, say: Callable[[str], object]) -> None:
        """``say`` shows why an action cannot be done, after its key."""
        self.by_id: dict[str, QAction] = {}
        self._why: dict[str, QShortcut] = {}
        for row in ACTIONS:
            action = QAction(row.text, window)
            action.setObjectName(row.id)
            if row.shortcut:
                action.setShortcut(QKeySequence(row.shortcut))
            keys = action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
            words = row.tip or row.text.replace("&", "").rstrip("…")
            action.setToolTip(f"{words} ({keys})" if keys else words)
            action.setStatusTip("")
            action.triggered.connect(lambda _=False, run=row.run: run(commands))
            window.addAction(action)
            self.by_id[row.id] = action
            if row.key_says_why:
                why = partial(self._say_why, row, commands, say)
                self._why[row.id] = QShortcut(action.shortcut(), window, why, enabled=False)

    def _say_why(self, row: ActionRow, commands: Commands, say: Callable[[str], object]) -> None:
        say(f"{self.by_id[row.id].iconText()}: {tr(row.blocked(commands.session.document))}")

    def fill_menus(self, bar: QMenuBar, recent: QMenu) -> None:
        """Put every action into its menu."""
        menus = {title: bar.addMenu(tr(title)) for title in MENUS}
        submenus: dict[str, QMenu] = {}
        for row in ACTIONS:
            menu = menus[row.menu]
            if row.submenu:
                if row.submenu not in submenus:
                    submenus[row.submenu] = menu.addMenu(row.submenu)
                menu = submenus[row.submenu]
            if row.starts_group and not menu.isEmpty():
                menu.addSeparator()
            menu.addAction(self.by_id[row.id])
            if row.id == "example":
                menu.addMenu(recent)

    def fill_toolbar(self, toolbar: QToolBar) -> None:
        """Put the actions of the toolbar there."""
        for row in ACTIONS:
            if row.in_toolbar:
                if row.starts_group:
                    toolbar.addSeparator()
                toolbar.addAction(self.by_id[row.id])

    def update_from(self, document: Document) -> None:
        """Enable the actions that the document allows."""
        for row in ACTIONS:
            action = self.by_id[row.id]
            is_blocked = bool(row.blocked(document))
            action.setEnabled(not is_blocked)
            if row.id in self._why:
                self._why[row.id].setEnabled(is_blocked)
            if row.label is not None:
                action.setText(tr(row.label(document)))
                action.setIconText(row.text.replace("&", ""))

    def restyle(self, colours: Colours) -> None:
        """Draw the icons in the colours of the theme."""
        for row in ACTIONS:
            if row.icon:
                colour = colours.good if row.id == "run" else colours.bad if row.id == "cancel" else colours.text
                self.by_id[row.id].setIcon(stroke_icon(row.icon, colour, colours.faded))

    def palette_entries(self, document: Document) -> list[tuple[str, QAction, str]]:
        """What the command palette lists: the words, the action, and why it cannot be done now."""
        entries = []
        for row in ACTIONS:
            action = self.by_id[row.id]
            words = f"{row.submenu or tr(row.menu)}: {action.text().rstrip('…')}".replace("&", "")
            entries.append((words, action, tr(row.blocked(document))))
        return entries
