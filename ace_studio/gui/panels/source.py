"""The source panel: the user's code with the lines that became ops, breaks and problems; the one selection."""

from collections.abc import Mapping
from pathlib import Path

from PySide6.QtCore import QSignalBlocker, QTimer
from PySide6.QtGui import QColor, QTextCursor, QTextFormat
from PySide6.QtWidgets import QComboBox, QMenu, QTextEdit

from ace_studio.gui.ops.break_entries import entries, is_same_place, parse_place
from ace_studio.gui.ops.facts import row_of_ops
from ace_studio.gui.style import Colours, Theme, told, tr
from ace_studio.gui.widgets.code_view import Badge, CodeView
from ace_studio.gui.widgets.fields import ComboBox
from ace_studio.gui.widgets.layouts import GAP, TIGHT, box, column, row
from ace_studio.gui.widgets.panel import Panel
from ace_studio.gui.widgets.small import label, offer_menu, short_lived_menu
from ace_studio.gui.words.formatting import plural, sentence
from ace_studio.records.by_identity import are_same
from ace_studio.records.graph import GraphTable
from ace_studio.records.recipes.recipe import CaptureControl, ControlKind
from ace_studio.session.code_names import CodeName, name_at
from ace_studio.session.document import Document, Part
from ace_studio.session.session import Session

_MARKED_LINES = 400
"""Most marked lines: Qt takes 35 µs per line, and nobody needs the marks of a whole model."""
_FILES_PX = 60
"""Least width of the list of files; a long path may be cut in a narrow panel."""


class SourcePanel(Panel):
    """Read-only code. A click on a marked line selects its ops or its break; a selected op scrolls to its line."""

    title = "Source"
    shows = frozenset({Part.GRAPH, Part.SELECTION, Part.PROBLEMS, Part.FILE})

    def __init__(self, session: Session, theme: Theme) -> None:
        super().__init__(session, theme)
        self._graph: GraphTable | None = None
        self._sources: Mapping[str, str] = {}
        self._selection: object = None
        self._marked: tuple[object, ...] = ()
        self._ops_of: dict[str, dict[int, list[str]]] = {}
        self.files = ComboBox(tr("File"), chosen=lambda: self._show_file(self.files.currentData()))
        self.files.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.files.setMinimumWidth(_FILES_PX)
        self._count = label("", "dim", wrap=False)
        self.text = CodeView(theme)
        self.text.setAccessibleName(tr("Source"))
        self.text.line_clicked.connect(self._select_line)
        self.text.badge_clicked.connect(self._select_line)
        offer_menu(self.text, lambda place: self.menu_at(self.text.line_at(place.y())))
        tools = row(self.files, self._count, None, margin=(GAP, TIGHT, GAP, TIGHT))
        self.show_pages("file", box(column(tools, self.text, gap=0)))
        self._empty.say(tr("No source yet"), tr("Trace the model to see which lines of your code became ops."))
        self.setFocusProxy(self.text)

    def update_from(self, document: Document) -> None:
        """Show the code, its marks and the selected lines."""
        self._pages.setCurrentIndex(1 if document.sources else 0)
        if not document.sources:
            if document.graph is not None:
                self._empty.say(tr("No source"), tr("The graph has no references to lines of your code."))
            elif document.file is not None:
                QTimer.singleShot(0, self, self.session.view.read_model_source)
            return
        if document.graph is not self._graph or document.sources is not self._sources:
            self._graph, self._sources = document.graph, document.sources
            self._selection = None
            self._ops_of = ops_by_line(document.graph) if document.graph is not None else {}
            self._offer_files(document.sources)
        marked = (document.capture, document.failure, document.problems, self.text.path)
        if not are_same(self._marked, marked):
            self._marked = marked
            self.text.set_badges(badges(document, self.text.path))
        selection = (document.selection.op_ids, document.selection.place)
        if selection != self._selection:
            self._selection = selection
            self._follow(document)

    def restyle(self, colours: Colours) -> None:
        """Another theme."""
        self._selection = None
        super().restyle(colours)

    def _offer_files(self, sources: Mapping[str, str]) -> None:
        by_ops = sorted(sources, key=lambda path: -sum(map(len, self._ops_of.get(path, {}).values())))
        with QSignalBlocker(self.files):
            self.files.clear()
            for path in by_ops:
                self.files.addItem(Path(path).name, path)
                self.files.setItemData(self.files.count() - 1, path, 3)
        shown = self.text.path if self.text.path in sources else by_ops[0]
        self.text.path = ""
        self._show_file(shown)

    def _show_file(self, path: str) -> None:
        if self.text.path != path:
            self.text.show_code(self.session.document.sources.get(path, ""), path=path)
            with QSignalBlocker(self.files):
                self.files.setCurrentIndex(self.files.findData(path))
        lines = self._ops_of.get(path, {})
        self.text.set_marks({line: len(ops) for line, ops in lines.items()})
        self._marked = ()
        self.text.set_badges(badges(self.session.document, path))
        words = tr(
            "{ops} from {lines}", ops=plural(sum(map(len, lines.values())), "op"), lines=plural(len(lines), "line")
        )
        self._count.setText(words if self._graph is not None else tr("Not traced yet"))
        self._mark(())

    def _follow(self, document: Document) -> None:
        known = _places(document)
        if not known:
            self._mark(())
            return
        current = self.text.path
        path = current if any(path == current for path, _ in known) else known[0][0]
        if path != current:
            self._show_file(path)
        lines = sorted({line for where, line in known if where == path})
        self._mark(lines[:_MARKED_LINES])
        self.text.scroll_to(lines[0])

    def _mark(self, lines: tuple[int, ...] | list[int]) -> None:
        """The background of lines: those of breaks and problems, and over them the selected ones."""
        colours = self.colours
        extras = []
        marked = {
            line: colours.warn_fill if one.is_break else colours.bad_fill for line, one in self.text.badges.items()
        }
        for line, fill in (marked | dict.fromkeys(lines, colours.accent_fill)).items():
            extra = QTextEdit.ExtraSelection()
            extra.format.setBackground(QColor(fill))
            extra.format.setProperty(QTextFormat.Property.FullWidthSelection, True)
            extra.cursor = QTextCursor(self.text.document().findBlockByNumber(line - 1))
            extras.append(extra)
        self.text.setExtraSelections(extras)

    # --- gestures ---

    def _select_line(self, line: int) -> None:
        """The break at a line comes before its ops, a problem after them."""
        document = self.session.document
        place = (self.text.path, line)
        breaks = document.capture.graph_breaks if document.capture else ()
        seam = next((at for at, one in enumerate(breaks) if is_same_place((one.file, one.line), place)), None)
        ops = self._ops_of.get(self.text.path, {}).get(line, [])
        if seam is not None:
            self.session.view.select_seam(seam)
        elif ops:
            self._selection = (tuple(ops), None)
            self.session.view.select(ops)
            self._mark((line,))
        elif line in self.text.badges:
            self.session.view.select_place(*place)

    def menu_at(self, line: int) -> QMenu:
        """The context menu of a line: controls for the function around it."""
        menu = short_lived_menu(self)
        copy = menu.addAction(tr("Copy"))
        copy.setEnabled(self.text.textCursor().hasSelection())
        copy.triggered.connect(lambda _=False: self.text.copy())
        found = name_at(self.text.toPlainText(), line)
        if found is not None:
            menu.addSeparator()
            for kind in kinds_for(found):
                menu.addAction(
                    tr("Mark {qualified} as {kind}", qualified=found.qualified, kind=kind)
                ).triggered.connect(lambda _=False, kind=kind: self._add_control(found, kind))
        return menu

    def _add_control(self, found: CodeName, kind: ControlKind) -> None:
        self.session.choices.add_control(CaptureControl(function=found.control_name(self.text.path), treat_as=kind))
        self.panel_wanted.emit("capture")


def kinds_for(name: CodeName) -> tuple[ControlKind, ...]:
    """The controls that fit a function, or a class."""
    return tuple(kind for kind in ControlKind if (kind is ControlKind.LEAF) == name.is_class)


def badges(document: Document, path: str) -> dict[int, Badge]:
    """Badges of one file: breaks by number, then problems and warnings of the capture."""
    found: dict[int, Badge] = {}
    warnings = document.capture.warnings if document.capture else ()
    found_at = [(one.where, told(one.what)) for one in warnings]
    found_at += [
        (one.where, " ".join(sentence(told(part)) for part in (one.what, one.remedy))) for one in document.problems
    ]
    for where, words in found_at:
        place = parse_place(where)
        if place is not None and is_same_place(place, (path, place[1])):
            found[place[1]] = Badge(text="!", tip=words, is_break=False)
    for one in reversed(entries(document)):
        if one.line and is_same_place((one.file, one.line), (path, one.line)):
            parts = (f"{one.heading}: {sentence(one.title)}", one.why, one.cost, one.remedy and f"→ {one.remedy}")
            tip = "\n".join(part for part in parts if part)
            found[one.line] = Badge(
                text=one.mark if one.seam is not None else "!", tip=tip, is_break=one.seam is not None
            )
    return found


def _places(document: Document) -> list[tuple[str, int]]:
    """The selected lines: the selected place, else the lines of the selected ops."""
    graph, selection = document.graph, document.selection
    if selection.place is not None and selection.place[0] in document.sources:
        return [selection.place]
    if graph is None:
        return []
    rows = row_of_ops(graph)
    places = [(graph.file[rows[op_id]], graph.line[rows[op_id]]) for op_id in selection.op_ids]
    return [(graph.files[file], line) for file, line in places if file >= 0 and line > 0]


def ops_by_line(table: GraphTable) -> dict[str, dict[int, list[str]]]:
    """Path -> line -> ids of the ops that came from it."""
    found: dict[str, dict[int, list[str]]] = {}
    for at in table.op_rows():
        if 0 <= table.file[at] < len(table.files) and table.line[at] > 0:
            lines = found.setdefault(table.files[table.file[at]], {})
            lines.setdefault(table.line[at], []).append(table.op_id[at])
    return found
