"""The help in a window of its own: contents or what was found at the left, the page at the right."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from PySide6 import QtGui
from PySide6.QtCore import QRegularExpression, Qt, QUrl
from PySide6.QtWidgets import QDialog, QTextBrowser, QTextEdit, QToolButton, QTreeWidget, QTreeWidgetItem, QWidget

from ace_studio.gui.style import Theme, stroke_icon, tr
from ace_studio.gui.widgets.kept_geometry import keep_geometry, restore_geometry
from ace_studio.gui.widgets.layouts import GAP, TIGHT, box, column, row, split
from ace_studio.gui.widgets.small import FilterField, fit_screen, label, quiet, tool_button
from ace_studio.records.places import resource_folder
from ace_studio.session.kept.settings import Settings

_ADDRESS = Qt.ItemDataRole.UserRole


class HelpDialog(QDialog):
    """A window that stays open beside the work, and remembers its size."""

    def __init__(self, theme: Theme, settings: Settings, parent: QWidget | None = None) -> None:
        super().__init__(parent, Qt.WindowType.Window)
        self.setWindowTitle(tr("Help"))
        self._theme = theme
        self.search = FilterField(tr("Search the help"), tr("Search the help"))
        self.search.settled.connect(self._fill)
        self.search.returnPressed.connect(self._open_first)
        self.contents = QTreeWidget()
        self.contents.setAccessibleName(tr("Contents"))
        self.contents.setHeaderHidden(True)
        self.contents.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.contents.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.contents.currentItemChanged.connect(self._chosen)
        self.browser = QTextBrowser(openLinks=False)
        self.browser.setAccessibleName(tr("Page"))
        self.browser.anchorClicked.connect(self._follow)
        self.browser.sourceChanged.connect(self._arrived)
        self.back = _arrow(tr("Back"), QtGui.QKeySequence.StandardKey.Back, self.browser.backward)
        self.forward = _arrow(tr("Forward"), QtGui.QKeySequence.StandardKey.Forward, self.browser.forward)
        self.browser.backwardAvailable.connect(self.back.setEnabled)
        self.browser.forwardAvailable.connect(self.forward.setEnabled)
        self.nothing = label(tr("No page contains all of these words. Try fewer or shorter ones."), "dim")
        self.nothing.hide()
        head = row(self.back, self.forward, self.search, gap=TIGHT, margin=(GAP, GAP, GAP, 0))
        parts = split(box(column(head, self.nothing, self.contents, stretch=2)), self.browser, sizes=(280, 640))
        parts.setStretchFactor(1, 1)
        self.setLayout(column(parts))
        fit_screen(self, 940, 640)
        restore_geometry(self, settings, "help")
        theme.changed.connect(self._restyle)
        self.finished.connect(lambda _: keep_geometry(self, settings, "help"))
        self._fill()
        self._restyle()

    def showEvent(self, event: QtGui.QShowEvent) -> None:  # noqa: N802 - Qt's name
        """Let the main window come in front of this one."""
        super().showEvent(event)
        self.windowHandle().setTransientParent(None)  # type: ignore[arg-type]

    def go_to(self, address: str) -> None:
        """Open ``page`` or ``page#section``; the index where there is no such page."""
        page, _, section = address.partition("#")
        path = help_folder() / f"{page}.md"
        url = QUrl.fromLocalFile(str(path if path.is_file() else help_folder() / "index.md"))
        url.setFragment(section or None)  # type: ignore[arg-type]
        self.browser.setSource(url)

    # --- the left side ---

    def _chosen(self, item: QTreeWidgetItem | None) -> None:
        if item is not None:
            self.go_to(item.data(0, _ADDRESS))

    def _fill(self) -> None:
        words = self.search.text()
        with quiet(self.contents):
            self.contents.clear()
            if words.strip():
                self._fill_found(words)
            else:
                self._fill_contents()
        self.nothing.setVisible(self.contents.topLevelItemCount() == 0)
        self._mark_words()
        self._mark_place(self.browser.source())

    def _fill_contents(self) -> None:
        page = self.contents.invisibleRootItem()
        for section in help_sections():
            item = QTreeWidgetItem([section.title])
            item.setData(0, _ADDRESS, section.address)
            item.setToolTip(0, section.title)
            if section.level == 1:
                page = item
                self.contents.addTopLevelItem(item)
            else:
                page.addChild(item)

    def _fill_found(self, words: str) -> None:
        titles = {section.page: section.title for section in help_sections() if section.level == 1}
        for section, snippet in search(words):
            where = section.title if section.level == 1 else f"{section.title}  –  {titles[section.page]}"
            item = QTreeWidgetItem([f"{where}\n{snippet}"])
            item.setData(0, _ADDRESS, section.address)
            item.setToolTip(0, f"{where}\n{section.text[:300]}")
            self.contents.addTopLevelItem(item)

    def _open_first(self) -> None:
        self._fill()
        first = self.contents.topLevelItem(0)
        if first is not None:
            self.contents.setCurrentItem(first)

    def _mark_place(self, url: QUrl) -> None:
        """Select the page in the contents that is shown, without going there."""
        address = url.fileName().removesuffix(".md") + (f"#{url.fragment()}" if url.hasFragment() else "")
        found = self.contents.model().match(
            self.contents.model().index(0, 0), _ADDRESS, address, 1, Qt.MatchFlag.MatchRecursive
        )
        with quiet(self.contents):
            self.contents.setCurrentIndex(found[0] if found else self.contents.rootIndex())
            if found:
                self.contents.expand(found[0])
                self.contents.scrollTo(found[0])

    # --- the page ---

    def _follow(self, link: QUrl) -> None:
        """A link to another page opens it here, any other one in the desktop's program."""
        if link.isRelative():
            self.browser.setSource(self.browser.source().resolved(link))
        else:
            QtGui.QDesktopServices.openUrl(link)

    def _arrived(self, url: QUrl) -> None:
        self._dress()
        self._mark_words()
        self._mark_place(url)
        self.browser.scrollToAnchor(url.fragment())

    def _restyle(self, *_: object) -> None:
        colours = self._theme.colours
        self.back.setIcon(stroke_icon("back", colours.text, colours.faded))
        self.forward.setIcon(stroke_icon("forward", colours.text, colours.faded))
        if not self.browser.source().isEmpty():
            self.browser.reload()
            self._dress()
            self._mark_words()

    def _dress(self) -> None:
        """Give headings room, tables lines and code a ground: Qt's Markdown has none of them."""
        colours, document = self._theme.colours, self.browser.document()
        document.setDocumentMargin(2 * GAP)
        cursor = QtGui.QTextCursor(document)
        cursor.beginEditBlock()  # else each change would lay the page out again
        for table in (one for one in document.rootFrame().childFrames() if isinstance(one, QtGui.QTextTable)):
            _line_table(table, colours.border)
        ground = QtGui.QTextCharFormat()
        ground.setBackground(QtGui.QColor(colours.raised))
        block = document.begin()
        while block.isValid():
            cursor.setPosition(block.position())
            look = QtGui.QTextBlockFormat()
            if block.blockFormat().headingLevel():
                look.setTopMargin(2 * GAP if block.blockNumber() else 0)
                look.setBottomMargin(GAP / 2)
                cursor.movePosition(QtGui.QTextCursor.MoveOperation.EndOfBlock, QtGui.QTextCursor.MoveMode.KeepAnchor)
                anchor = QtGui.QTextCharFormat()
                anchor.setAnchor(True)
                anchor.setAnchorNames([slug(block.text())])
                cursor.mergeCharFormat(anchor)
            elif block.blockFormat().hasProperty(QtGui.QTextBlockFormat.Property.BlockCodeFence):
                look.setBackground(QtGui.QColor(colours.raised))
            cursor.mergeBlockFormat(look)
            for piece in (each.fragment() for each in block):  # type: ignore[attr-defined]
                if piece.charFormat().fontFixedPitch():
                    cursor.setPosition(piece.position())
                    cursor.setPosition(piece.position() + piece.length(), QtGui.QTextCursor.MoveMode.KeepAnchor)
                    cursor.mergeCharFormat(ground)
            block = block.next()
        cursor.endEditBlock()

    def _mark_words(self) -> None:
        """Mark what was searched for in the page."""
        marks = []
        look = QtGui.QTextCharFormat()
        look.setBackground(QtGui.QColor(self._theme.colours.accent))
        look.setForeground(QtGui.QColor(self._theme.colours.on_accent))
        words = [re.escape(word) for word in self.search.text().split()]
        pattern = QRegularExpression("|".join(words), QRegularExpression.PatternOption.CaseInsensitiveOption)
        found = self.browser.document().find(pattern) if words else QtGui.QTextCursor()
        while not found.isNull():
            mark = QTextEdit.ExtraSelection()
            mark.cursor, mark.format = found, look
            marks.append(mark)
            found = self.browser.document().find(pattern, found)
        self.browser.setExtraSelections(marks)


def _line_table(table: QtGui.QTextTable, colour: str) -> None:
    look = table.format()
    look.setBorder(1)
    look.setBorderCollapse(True)
    look.setBorderStyle(QtGui.QTextFrameFormat.BorderStyle.BorderStyle_Solid)
    look.setBorderBrush(QtGui.QBrush(QtGui.QColor(colour)))
    look.setCellPadding(4)
    look.setWidth(QtGui.QTextLength(QtGui.QTextLength.Type.PercentageLength, 100))
    table.setFormat(look)


def _arrow(words: str, keys: QtGui.QKeySequence.StandardKey, action: Callable[[], object]) -> QToolButton:
    made = tool_button(words, action)
    made.setEnabled(False)
    made.setShortcut(keys)
    made.setToolTip(f"{words} ({made.shortcut().toString(QtGui.QKeySequence.SequenceFormat.NativeText)})")
    return made


SNIPPET = 70
"""Characters shown of the text around what was searched for."""


@dataclass(frozen=True)
class HelpSection:
    """A heading and the text under it, up to the next heading."""

    page: Path
    title: str
    level: int
    """1 for the title of the page."""
    text: str
    """Without marks, in one line."""

    @property
    def address(self) -> str:
        """``page`` or ``page#section``."""
        return self.page.stem if self.level == 1 else f"{self.page.stem}#{slug(self.title)}"


def slug(title: str) -> str:
    """A heading as a part of an address, as web servers of repositories write it."""
    return re.sub(r"[^\w]+", "-", title.casefold()).strip("-")


def help_folder() -> Path:
    """Where the pages are."""
    return resource_folder() / "help"


def help_pages() -> tuple[Path, ...]:
    """The index, the pages in its order, then what it does not name."""
    folder = help_folder()
    index = folder / "index.md"
    linked = re.findall(r"\]\(([\w-]+\.md)\)", index.read_text(encoding="utf-8")) if index.is_file() else []
    named = [folder / name for name in ("index.md", *linked)]
    others = sorted(page for page in folder.glob("*.md") if page not in named)
    return tuple(page for page in (*named, *others) if page.is_file())


@cache
def help_sections() -> tuple[HelpSection, ...]:
    """All sections of all pages, in order."""
    return tuple(section for page in help_pages() for section in _sections_of(page))


def _sections_of(page: Path) -> list[HelpSection]:
    blocks: list[tuple[str, list[str]]] = []
    is_code = False
    for line in page.read_text(encoding="utf-8").splitlines():
        is_code ^= line.startswith("```")
        if line.startswith("#") and not is_code:
            blocks.append((line, []))
        elif blocks:
            blocks[-1][1].append(line)
    return [
        HelpSection(page, _plain(head.lstrip("#")), len(head) - len(head.lstrip("#")), _plain(" ".join(lines)))
        for head, lines in blocks
    ]


def _plain(text: str) -> str:
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return " ".join(re.sub(r"[`*|]|-{3,}", " ", text).split())


def search(words: str) -> list[tuple[HelpSection, str]]:
    """The sections that contain all words, those with a word in their title first, each with the text around a word."""
    wanted = words.casefold().split()
    hits = []
    for at, section in enumerate(help_sections()):
        title, text = section.title.casefold(), section.text.casefold()
        if wanted and all(word in title or word in text for word in wanted):
            titled = sum(word in title for word in wanted)
            first = min((place for word in wanted if (place := text.find(word)) >= 0), default=0)
            start = section.text.rfind(" ", 0, max(0, first - SNIPPET // 3)) + 1
            hits.append((-titled, -sum(map(text.count, wanted)), at, section, section.text[start : start + SNIPPET]))
    return [(section, snippet) for *_, section, snippet in sorted(hits, key=lambda hit: hit[:3])]
