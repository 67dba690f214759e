"""The source panel: the user's code with the lines that became ops; the same selection as everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from PySide6.QtCore import QSignalBlocker
from PySide6.QtGui import QColor, QTextCursor, QTextFormat
from PySide6.QtWidgets import QComboBox, QStackedWidget, QTextEdit, QWidget

from ace_studio.gui.code_view import CodeView
from ace_studio.gui.formatting import plural
from ace_studio.gui.op_facts import row_of_ops
from ace_studio.gui.panel import Panel
from ace_studio.gui.theme import Colours, Theme
from ace_studio.gui.widgets import GAP, EmptyState, column, label, row
from ace_studio.records.graph import GraphTable
from ace_studio.session.document import Document, Part
from ace_studio.session.session import Session

_MARKED_LINES = 400
"""Qt takes 35 µs per marked line; whoever selects a whole model does not look for one of them."""


class SourcePanel(Panel):
    """Read-only code. A click on a marked line selects its ops; selecting an op scrolls to its line."""

    title = "Source"
    shows = frozenset({Part.GRAPH, Part.SELECTION})

    def __init__(self, session: Session, theme: Theme) -> None:
        """Start empty."""
        super().__init__(session, theme)
        self._graph: GraphTable | None = None
        self._selection: tuple[str, ...] | None = None
        self._ops_of: dict[str, dict[int, list[str]]] = {}
        self.files = QComboBox()
        self.files.setAccessibleName("File")
        self.files.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.files.activated.connect(lambda _: self._show_file(self.files.currentData()))
        self._count = label("", "dim", wrap=False)
        self.text = CodeView(theme)
        self.text.setAccessibleName("Source")
        self.text.line_clicked.connect(self._select_line)
        tools = row(self.files, self._count, None)
        tools.setContentsMargins(GAP, 5, GAP, 5)
        content = QWidget()
        content.setLayout(column(tools, self.text, gap=0))
        self._empty = EmptyState("file")
        self._empty.say("No source yet", "Trace the model to see which lines of your code became ops.")
        self._empty.tint(theme.colours.text_dim)
        self._pages = QStackedWidget()
        self._pages.addWidget(self._empty)
        self._pages.addWidget(content)
        self.setLayout(column(self._pages))
        self.setFocusProxy(self.text)

    def update_from(self, document: Document) -> None:
        """Show the code and the selected lines."""
        graph = document.graph
        self._pages.setCurrentIndex(1 if graph is not None and document.sources else 0)
        if graph is None or not document.sources:
            if graph is not None:
                self._empty.say("No source", "The graph does not name lines of your code.")
            return
        if graph is not self._graph:
            self._graph = graph
            self._selection = None
            self._ops_of = ops_by_line(graph)
            self._offer_files(document.sources)
        if document.selection.op_ids != self._selection:
            self._selection = document.selection.op_ids
            self._follow(document)

    def restyle(self, colours: Colours) -> None:
        """Another theme."""
        self._empty.tint(colours.text_dim)
        self._mark(())

    def _offer_files(self, sources: Mapping[str, str]) -> None:
        by_ops = sorted(sources, key=lambda path: -sum(map(len, self._ops_of.get(path, {}).values())))
        with QSignalBlocker(self.files):
            self.files.clear()
            for path in by_ops:
                self.files.addItem(Path(path).name, path)
                self.files.setItemData(self.files.count() - 1, path, 3)
        self._show_file(by_ops[0])

    def _show_file(self, path: str) -> None:
        if self.text.path != path:
            self.text.show_code(self.session.document.sources.get(path, ""), path=path)
        lines = self._ops_of.get(path, {})
        self.text.set_marks({line: len(ops) for line, ops in lines.items()})
        self._count.setText(f"{plural(sum(map(len, lines.values())), 'op')} from {plural(len(lines), 'line')}")
        self._mark(())

    def _follow(self, document: Document) -> None:
        graph = document.graph
        if graph is None:
            return
        rows = row_of_ops(graph)
        places = [(graph.file[rows[op_id]], graph.line[rows[op_id]]) for op_id in document.selection.op_ids]
        known = [(graph.files[file], line) for file, line in places if file >= 0 and line > 0]
        if not known:
            self._mark(())
            return
        current = self.text.path
        path = current if any(path == current for path, _ in known) else known[0][0]
        if path != current:
            with QSignalBlocker(self.files):
                self.files.setCurrentIndex(self.files.findData(path))
            self._show_file(path)
        lines = sorted({line for where, line in known if where == path})
        self._mark(lines[:_MARKED_LINES])
        self.text.scroll_to(lines[0])

    def _mark(self, lines: tuple[int, ...] | list[int]) -> None:
        extras = []
        for line in lines:
            extra = QTextEdit.ExtraSelection()
            extra.format.setBackground(QColor(self.colours.accent_fill))
            extra.format.setProperty(QTextFormat.Property.FullWidthSelection, True)
            extra.cursor = QTextCursor(self.text.document().findBlockByNumber(line - 1))
            extras.append(extra)
        self.text.setExtraSelections(extras)

    def _select_line(self, line: int) -> None:
        ops = self._ops_of.get(self.text.path, {}).get(line, [])
        if ops:
            self._selection = tuple(ops)
            self.session.select(ops)
            self._mark((line,))


def ops_by_line(table: GraphTable) -> dict[str, dict[int, list[str]]]:
    """Path -> line -> ids of the ops that came from it."""
    found: dict[str, dict[int, list[str]]] = {}
    for at in table.op_rows():
        if 0 <= table.file[at] < len(table.files) and table.line[at] > 0:
            lines = found.setdefault(table.files[table.file[at]], {})
            lines.setdefault(table.line[at], []).append(table.op_id[at])
    return found
