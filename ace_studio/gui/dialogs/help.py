"""The help in a window of its own: contents or what was found at the left, the page at the right."""

from __future__ import annotations

import re
from collections.abc import Callable

from PySide6.QtCore import QRegularExpression, Qt, QUrl
from PySide6.QtGui import (
    QBrush,
    QColor,
    QDesktopServices,
    QKeySequence,
    QShowEvent,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextFrameFormat,
    QTextLength,
    QTextTable,
)
from PySide6.QtWidgets import (
    QDialog,
    QSplitter,
    QTextBrowser,
    QTextEdit,
    QToolButton,
    QTreeWidget,
    QTreeWidgetItem,
    QWidget,
)

from ace_studio.gui.dialogs.help_pages import help_folder, help_sections, search, slug
from ace_studio.gui.style.icons import stroke_icon
from ace_studio.gui.style.theme import Theme
from ace_studio.gui.widgets.kept_geometry import keep_geometry, restore_geometry
from ace_studio.gui.widgets.small import GAP, FilterField, column, fit_screen, label, quiet, row
from ace_studio.session.kept.settings import Settings

_ADDRESS = Qt.ItemDataRole.UserRole


class HelpDialog(QDialog):
    """A window that stays open beside the work, and remembers its size."""

    def __init__(self, theme: Theme, settings: Settings, parent: QWidget | None = None) -> None:
        """Show nothing yet; `go_to` opens a page."""
        super().__init__(parent, Qt.WindowType.Window)
        self.setWindowTitle("Help")
        self._theme, self._settings = theme, settings
        self.search = FilterField("Search the help", "Search the help")
        self.search.settled.connect(self._fill)
        self.search.returnPressed.connect(self._open_first)
        self.contents = QTreeWidget()
        self.contents.setAccessibleName("Contents")
        self.contents.setHeaderHidden(True)
        self.contents.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.contents.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.contents.currentItemChanged.connect(self._chosen)
        self.browser = QTextBrowser()
        self.browser.setAccessibleName("Page")
        self.browser.setOpenLinks(False)
        self.browser.anchorClicked.connect(self._follow)
        self.browser.sourceChanged.connect(self._arrived)
        self.back = _arrow("Back", QKeySequence.StandardKey.Back, self.browser.backward)
        self.forward = _arrow("Forward", QKeySequence.StandardKey.Forward, self.browser.forward)
        self.browser.backwardAvailable.connect(self.back.setEnabled)
        self.browser.forwardAvailable.connect(self.forward.setEnabled)
        self.nothing = label("No page contains all of these words. Try fewer or shorter ones.", "dim")
        self.nothing.hide()
        head = row(self.back, self.forward, self.search, gap=4)
        head.setContentsMargins(GAP, GAP, GAP, 0)
        left = QWidget()
        left.setLayout(column(head, self.nothing, self.contents))
        left.layout().setStretch(2, 1)  # type: ignore[union-attr]
        split = QSplitter()
        split.addWidget(left)
        split.addWidget(self.browser)
        split.setSizes([280, 640])
        split.setStretchFactor(1, 1)
        split.setChildrenCollapsible(False)
        split.setHandleWidth(1)
        self.setLayout(column(split))
        fit_screen(self, 940, 640)
        restore_geometry(self, settings, "help")
        theme.changed.connect(self._restyle)
        self.finished.connect(lambda _: keep_geometry(self, settings, "help"))
        self._fill()
        self._restyle()

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802 - Qt's name
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
        """List the contents, or what was found."""
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
            QDesktopServices.openUrl(link)

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
        for frame in document.rootFrame().childFrames():
            if isinstance(frame, QTextTable):
                _line_table(frame, colours.border)
        ground = QTextCharFormat()
        ground.setBackground(QColor(colours.raised))
        cursor = QTextCursor(document)
        block = document.begin()
        while block.isValid():
            cursor.setPosition(block.position())
            look = QTextBlockFormat()
            if block.blockFormat().headingLevel():
                look.setTopMargin(2 * GAP if block.blockNumber() else 0)
                look.setBottomMargin(GAP / 2)
                cursor.select(QTextCursor.SelectionType.BlockUnderCursor)
                anchor = QTextCharFormat()
                anchor.setAnchor(True)
                anchor.setAnchorNames([slug(block.text())])
                cursor.mergeCharFormat(anchor)
            elif block.blockFormat().hasProperty(QTextBlockFormat.Property.BlockCodeFence):
                look.setBackground(QColor(colours.raised))
            cursor.mergeBlockFormat(look)
            for piece in block:  # type: ignore[attr-defined]
                if piece.fragment().charFormat().fontFixedPitch():
                    cursor.setPosition(piece.fragment().position())
                    end = piece.fragment().position() + piece.fragment().length()
                    cursor.setPosition(end, QTextCursor.MoveMode.KeepAnchor)
                    cursor.mergeCharFormat(ground)
            block = block.next()

    def _mark_words(self) -> None:
        """Mark what was searched for in the page."""
        marks = []
        look = QTextCharFormat()
        look.setBackground(QColor(self._theme.colours.accent))
        look.setForeground(QColor(self._theme.colours.on_accent))
        words = [re.escape(word) for word in self.search.text().split()]
        pattern = QRegularExpression("|".join(words), QRegularExpression.PatternOption.CaseInsensitiveOption)
        found = self.browser.document().find(pattern) if words else QTextCursor()
        while not found.isNull():
            mark = QTextEdit.ExtraSelection()
            mark.cursor, mark.format = found, look
            marks.append(mark)
            found = self.browser.document().find(pattern, found)
        self.browser.setExtraSelections(marks)


def _line_table(table: QTextTable, colour: str) -> None:
    look = table.format()
    look.setBorder(1)
    look.setBorderCollapse(True)
    look.setBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
    look.setBorderBrush(QBrush(QColor(colour)))
    look.setCellPadding(4)
    look.setWidth(QTextLength(QTextLength.Type.PercentageLength, 100))
    table.setFormat(look)


def _arrow(words: str, keys: QKeySequence.StandardKey, action: Callable[[], object]) -> QToolButton:
    made = QToolButton()
    made.setAutoRaise(True)
    made.setEnabled(False)
    made.setAccessibleName(words)
    made.setShortcut(keys)
    made.setToolTip(f"{words} ({made.shortcut().toString(QKeySequence.SequenceFormat.NativeText)})")
    made.clicked.connect(action)
    return made
