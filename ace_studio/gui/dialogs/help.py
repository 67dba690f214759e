"""The help: the pages that ship with the program, one Markdown file each."""

from __future__ import annotations

import re
from pathlib import Path

from PySide6.QtCore import QSize, Qt, QUrl
from PySide6.QtWidgets import QDialog, QListWidget, QListWidgetItem, QSplitter, QTextBrowser, QWidget

from ace_studio.gui.style.theme import Theme
from ace_studio.gui.widgets.small import column, fit_screen
from ace_studio.records.places import resource_folder


def help_pages() -> tuple[Path, ...]:
    """The index, the pages in its order, then what it does not name."""
    folder = resource_folder() / "help"
    index = folder / "index.md"
    linked = re.findall(r"\]\(([\w-]+\.md)\)", index.read_text(encoding="utf-8")) if index.is_file() else []
    named = [folder / name for name in ("index.md", *linked)]
    others = sorted(page for page in folder.glob("*.md") if page not in named)
    return tuple(page for page in (*named, *others) if page.is_file())


def page_title(page: Path) -> str:
    """The first heading of a page."""
    lines = page.read_text(encoding="utf-8").splitlines()
    return next((line.lstrip("# ").strip() for line in lines if line.startswith("#")), page.stem)


class HelpDialog(QDialog):
    """Titles at the left, the page at the right."""

    def __init__(self, theme: Theme, parent: QWidget | None = None, *, page: str = "") -> None:
        """Open at a page, named by its file without the ending; at the first if none is named."""
        super().__init__(parent)
        self.setWindowTitle("Help")
        fit_screen(self, 920, 620)
        self.contents = QListWidget()
        self.contents.setAccessibleName("Pages")
        self.contents.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.browser = QTextBrowser()
        self.browser.setOpenLinks(False)
        self.browser.anchorClicked.connect(self._follow)
        self.browser.document().setDocumentMargin(18)
        pages = help_pages()
        for path in pages:
            item = QListWidgetItem(page_title(path))
            item.setData(Qt.ItemDataRole.UserRole, str(path))
            item.setSizeHint(QSize(0, self.fontMetrics().height() + 10))
            item.setToolTip(item.text())
            self.contents.addItem(item)
        self.contents.currentItemChanged.connect(lambda item, _: self._show(item))
        split = QSplitter()
        split.addWidget(self.contents)
        split.addWidget(self.browser)
        widest = max((self.fontMetrics().horizontalAdvance(page_title(path)) for path in pages), default=0)
        split.setSizes([min(360, widest + 32), 640])
        split.setHandleWidth(1)
        self.setLayout(column(split))
        theme.changed.connect(lambda _: self._show(self.contents.currentItem()))
        if pages:
            self.contents.setCurrentRow(next((at for at, path in enumerate(pages) if path.stem == page), 0))
        else:
            self.browser.setMarkdown(f"The pages of the help are missing; they belong into `{resource_folder()}/help`.")

    def _show(self, item: QListWidgetItem | None) -> None:
        if item is not None:
            path = Path(item.data(Qt.ItemDataRole.UserRole))
            self.browser.setSearchPaths([str(path.parent)])
            self.browser.setMarkdown(path.read_text(encoding="utf-8"))

    def _follow(self, link: QUrl) -> None:
        """A link to another page opens it here. Links out of the application are only shown: it works offline."""
        stem = Path(link.path()).stem
        for at in range(self.contents.count()):
            if Path(self.contents.item(at).data(Qt.ItemDataRole.UserRole)).stem == stem:
                self.contents.setCurrentRow(at)
                return
        if link.hasFragment() and not link.path():
            self.browser.scrollToAnchor(link.fragment())
