"""The stylesheet: what a palette cannot say. Kept small; ordinary controls keep the look of the platform style."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ace_studio.gui.theme import Colours

_TEMPLATE = """
QToolTip {{ background: {raised}; color: {text}; border: 1px solid {border}; padding: 4px; }}
QToolBar {{ background: {raised}; border: 0; border-bottom: 1px solid {border}; padding: 4px 6px; spacing: 2px; }}
QToolBar QToolButton {{ border: 1px solid transparent; border-radius: 5px; padding: 4px 9px; }}
QToolBar QToolButton:hover {{ background: {border}; }}
QToolBar QToolButton:focus {{ border-color: {accent}; }}
QToolBar QToolButton:disabled {{ color: {text_dim}; }}
QMenuBar {{ background: {raised}; }}
QStatusBar {{ background: {raised}; border-top: 1px solid {border}; }}
QStatusBar::item {{ border: 0; }}
QSplitter::handle {{ background: {border}; }}
QSplitter::handle:hover {{ background: {accent}; }}
QTabWidget::pane {{ border: 0; }}
QTabBar {{ background: {raised}; }}
QTabBar::tab {{ background: {raised}; color: {text_dim}; padding: 6px 12px; border: 0;
  border-bottom: 2px solid transparent; }}
QTabBar::tab:hover {{ color: {text}; }}
QTabBar::tab:selected {{ color: {text}; border-bottom: 2px solid {accent}; background: {surface}; }}
QTabBar::tab:focus {{ color: {accent}; }}
QTabWidget {{ background: {surface}; }}
QHeaderView {{ background: {raised}; }}
QHeaderView::section {{ background: {raised}; color: {text_dim}; border: 0; border-right: 1px solid {border};
  border-bottom: 1px solid {border}; padding: 4px 8px; }}
QTableView, QTreeView, QListView {{ background: {surface}; border: 0; gridline-color: {border};
  selection-background-color: {accent_fill}; selection-color: {text}; }}
QTableView::item:focus {{ border: 1px solid {accent}; }}
QTableCornerButton::section {{ background: {raised}; border: 0; }}
QPlainTextEdit, QTextBrowser {{ border: 0; }}
QScrollArea {{ border: 0; background: {surface}; }}
QProgressBar {{ border: 1px solid {border}; border-radius: 4px; background: {window}; text-align: center;
  max-height: 12px; }}
QProgressBar::chunk {{ background: {accent}; border-radius: 3px; }}
*[role="surface"] {{ background: {surface}; }}
QLabel[role="dim"] {{ color: {text_dim}; }}
QLabel[role="title"] {{ font-size: 15pt; font-weight: 600; }}
QLabel[role="heading"] {{ font-weight: 600; color: {text}; padding-top: 4px; }}
QLabel[role="good"] {{ color: {good}; }}
QLabel[role="warn"] {{ color: {warn}; }}
QLabel[role="bad"] {{ color: {bad}; }}
QFrame[role="rule"] {{ background: {border}; border: 0; max-height: 1px; }}
QPushButton[role="primary"], QToolButton[role="primary"] {{ background: {accent}; color: {on_accent};
  border: 1px solid {accent}; border-radius: 5px; padding: 5px 16px; font-weight: 600; }}
QPushButton[role="primary"]:hover {{ border-color: {text}; }}
QPushButton[role="primary"]:focus {{ border: 1px solid {text}; }}
QPushButton[role="primary"]:disabled {{ background: {raised}; color: {text_dim}; border-color: {border}; }}
QPushButton[role="link"] {{ background: transparent; border: 1px solid transparent; border-radius: 5px;
  color: {accent}; text-align: left; padding: 4px 6px; }}
QPushButton[role="link"]:hover {{ background: {raised}; }}
QPushButton[role="link"]:focus {{ border-color: {accent}; }}
QFrame[role="card"] {{ background: {raised}; border: 1px solid {border}; border-radius: 6px; }}
QFrame[bar="info"] {{ background: {info_fill}; border: 0; border-bottom: 1px solid {border}; }}
QFrame[bar="warn"] {{ background: {warn_fill}; border: 0; border-bottom: 1px solid {border}; }}
QFrame[bar="bad"] {{ background: {bad_fill}; border: 0; border-bottom: 1px solid {border}; }}
QFrame[role="drop"] {{ border: 2px dashed {border}; border-radius: 12px; background: {surface}; }}
QFrame[role="drop"][over="true"] {{ border-color: {accent}; background: {info_fill}; }}
"""


def stylesheet(colours: Colours) -> str:
    """The application's stylesheet in the colours of a theme."""
    values = {name: value for name, value in vars(colours).items() if isinstance(value, str)}
    return _TEMPLATE.format_map(values)
