"""The stylesheet: looks that a palette cannot express. Ordinary controls keep the look of the style."""

from __future__ import annotations

from ace_studio.gui.style.colours import Colours
from ace_studio.gui.style.sizes import NAME_PT, STRONG, TITLE_PT
from ace_studio.records.places import resource_folder

_TEMPLATE = """
QToolTip {{ background: {raised}; color: {text}; border: 1px solid {border}; padding: 4px; }}
QToolBar {{ background: {raised}; border: 0; border-bottom: 1px solid {border}; padding: 4px 6px; spacing: 2px; }}
QToolBar QToolButton {{ border: 1px solid transparent; border-radius: 5px; padding: 4px 9px; }}
QToolBar QToolButton:hover {{ background: {border}; }}
QToolBar QToolButton:focus {{ border-color: {accent}; }}
QToolBar QToolButton:disabled {{ color: {faded}; }}
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
  border-bottom: 1px solid {border}; padding: 4px 5px 4px 4px; }}
QTableView, QTreeView, QListView {{ background: {surface}; border: 0; gridline-color: {border};
  selection-background-color: {accent_fill}; selection-color: {text}; }}
QTreeView::item {{ padding: 2px 5px 2px 0; }}
QListWidget::item {{ padding: 4px 6px; }}
QFrame[role="palette"] {{ background: {surface}; border: 1px solid {border}; }}
QTableView::item:focus {{ border: 1px solid {accent}; }}
QTableCornerButton::section {{ background: {raised}; border: 0; }}
QPlainTextEdit, QTextBrowser {{ border: 0; }}
QScrollArea {{ border: 0; background: {surface}; }}
QScrollBar:vertical {{ background: transparent; width: 11px; margin: 0; }}
QScrollBar:horizontal {{ background: transparent; height: 11px; margin: 0; }}
QScrollBar::handle {{ background: {control}; border-radius: 4px; margin: 2px; }}
QScrollBar::handle:vertical {{ min-height: 28px; }}
QScrollBar::handle:horizontal {{ min-width: 28px; }}
QScrollBar::handle:hover {{ background: {text}; }}
QScrollBar::add-line, QScrollBar::sub-line {{ width: 0; height: 0; }}
QScrollBar::add-page, QScrollBar::sub-page {{ background: transparent; }}
QAbstractScrollArea::corner {{ background: transparent; border: 0; }}
QProgressBar {{ border: 1px solid {control}; border-radius: 4px; background: {window}; text-align: center;
  max-height: 12px; }}
QProgressBar::chunk {{ background: {accent}; border-radius: 3px; }}
*[role="surface"] {{ background: {surface}; }}
QLabel[role="dim"] {{ color: {text_dim}; }}
QLabel[role="title"] {{ font-size: {title}pt; font-weight: {strong}; }}
*[weight="strong"] {{ font-weight: {strong}; }}
*[weight="name"] {{ font-weight: {strong}; font-size: {name_size}pt; }}
QLabel[role="heading"] {{ font-weight: {strong}; color: {text}; padding-top: 4px; }}
QToolButton[role="fold"] {{ border: 1px solid transparent; border-radius: 4px; padding: 2px 4px;
  font-weight: {strong}; }}
QToolButton[role="fold"]:hover {{ background: {raised}; }}
QToolButton[role="fold"]:focus {{ border-color: {accent}; }}
QToolButton[role="fold"]:checked {{ background: transparent; }}
QFrame[role="groups"] {{ background: {raised}; border-right: 1px solid {border}; }}
QToolButton[role="group"] {{ border: 1px solid transparent; border-left: 2px solid transparent; border-radius: 0;
  padding: 4px 1px; color: {text_dim}; }}
QToolButton[role="group"]:hover {{ color: {text}; }}
QToolButton[role="group"]:checked {{ color: {text}; background: {surface}; border-left-color: {accent}; }}
QToolButton[role="group"]:focus {{ border-color: {accent}; }}
QToolButton::menu-button {{ border: 0; width: 16px; }}
QToolButton[role="primary"][popupMode="1"] {{ padding-right: 20px; }}
QToolButton[role="fold"][popupMode="1"] {{ padding-right: 18px; }}
QFrame[role="steps"] QToolButton {{ border: 1px solid transparent; padding: 4px 8px; }}
QFrame[role="steps"] QToolButton[popupMode="1"] {{ padding-right: 20px; }}
QToolButton[role="menu"] {{ background: {raised}; border: 1px solid {raised}; padding: 5px; }}
QToolButton[role="menu"]:hover, QToolButton[role="menu"]:focus {{ border-color: {accent}; }}
QToolButton[role="menu"]::menu-indicator {{ image: none; }}
QToolButton[role="plain"] {{ background: {raised}; color: {text}; border: 1px solid {control}; border-radius: 5px;
  padding: 4px 10px; }}
QToolButton[role="plain"]:hover {{ border-color: {text}; }}
QToolButton[role="plain"]:focus {{ border-color: {accent}; }}
QToolButton[role="plain"]:checked {{ background: {accent_fill}; border-color: {accent}; }}
QToolButton[role="plain"]:disabled {{ color: {faded}; background: transparent; border-color: {border}; }}
QLabel[role="good"] {{ color: {good}; }}
QLabel[role="warn"] {{ color: {warn}; }}
QLabel[role="bad"] {{ color: {bad}; }}
QFrame[role="rule"] {{ background: {border}; border: 0; max-height: 1px; }}
QPushButton {{ background: {raised}; color: {text}; border: 1px solid {control}; border-radius: 5px;
  padding: 4px 12px; }}
QPushButton:hover {{ border-color: {text}; }}
QPushButton:pressed {{ background: {border}; }}
QPushButton:focus {{ border-color: {accent}; }}
QPushButton:disabled {{ color: {faded}; background: transparent; border-color: {border}; }}
QLineEdit, QComboBox, QAbstractSpinBox {{ background: {surface}; color: {text}; border: 1px solid {control};
  border-radius: 5px; padding: 3px 7px; min-height: 18px; selection-background-color: {accent_fill};
  selection-color: {text}; }}
QLineEdit:focus, QComboBox:focus, QAbstractSpinBox:focus {{ border-color: {accent}; }}
QLineEdit {{ lineedit-clear-button-icon: url("{icons}/close-{tone}.svg"); }}
QLineEdit[role="bad"], QComboBox[role="bad"] {{ border-color: {bad}; }}
QLineEdit:disabled, QComboBox:disabled, QAbstractSpinBox:disabled {{ color: {faded}; background: transparent;
  border-color: {border}; }}
QAbstractSpinBox QLineEdit {{ border: 0; padding: 0; min-height: 0; background: transparent; }}
QComboBox QLineEdit {{ border: 0; padding: 0; min-height: 0; background: transparent; }}
QComboBox::drop-down {{ border: 0; width: 22px; subcontrol-origin: padding; subcontrol-position: center right; }}
QComboBox::down-arrow {{ image: url("{icons}/down-{tone}.svg"); width: 11px; height: 11px; }}
QComboBox QAbstractItemView {{ background: {surface}; border: 1px solid {control}; padding: 2px;
  selection-background-color: {accent_fill}; selection-color: {text}; outline: 0; }}
QAbstractSpinBox {{ padding: 0 20px 0 0; min-height: 24px; }}
QAbstractSpinBox::up-button, QAbstractSpinBox::down-button {{ border: 0; width: 18px; background: transparent;
  subcontrol-origin: border; }}
QAbstractSpinBox::up-button {{ subcontrol-position: top right; }}
QAbstractSpinBox::down-button {{ subcontrol-position: bottom right; }}
QAbstractSpinBox::up-button:hover, QAbstractSpinBox::down-button:hover {{ background: {raised}; }}
QAbstractSpinBox::up-arrow {{ image: url("{icons}/up-{tone}.svg"); width: 9px; height: 9px; }}
QAbstractSpinBox::down-arrow {{ image: url("{icons}/down-{tone}.svg"); width: 9px; height: 9px; }}
QCheckBox {{ spacing: 8px; border: 1px solid transparent; border-radius: 5px; padding: 2px 5px 2px 2px; }}
QTreeView::indicator {{ width: 14px; height: 14px; border: 1px solid {text_dim}; border-radius: 4px;
  background: {surface}; }}
QTreeView::indicator:hover {{ border-color: {accent}; }}
QTreeView::indicator:checked {{ background: {accent}; border-color: {accent};
  image: url("{icons}/check-{tone}.svg"); }}
QTreeView::indicator:indeterminate {{ border-color: {accent}; background: {surface};
  image: url("{icons}/dash-{tone}.svg"); }}
QTreeView::indicator:disabled {{ border-color: {border}; }}
QTreeView::indicator:checked:disabled {{ background: {border}; }}
QCheckBox::indicator {{ width: 14px; height: 14px; border: 1px solid {text_dim}; border-radius: 4px;
  background: {surface}; }}
QCheckBox::indicator:hover {{ border-color: {accent}; }}
QCheckBox:focus {{ border-color: {accent}; }}
QCheckBox::indicator:checked {{ background: {accent}; border-color: {accent};
  image: url("{icons}/check-{tone}.svg"); }}
QCheckBox::indicator:disabled {{ border-color: {border}; }}
QCheckBox::indicator:checked:disabled {{ background: {border}; border-color: {border}; }}
QCheckBox:disabled {{ color: {faded}; }}
QPushButton[role="primary"], QToolButton[role="primary"] {{ background: {accent}; color: {on_accent};
  border: 1px solid {accent}; border-radius: 5px; padding: 4px 14px; font-weight: {strong}; }}
QPushButton[role="primary"]:hover {{ border-color: {text}; }}
QPushButton[role="primary"]:focus {{ border: 1px solid {text}; }}
QPushButton[role="primary"]:disabled {{ background: {raised}; color: {faded}; border-color: {border}; }}
QPushButton[role="link"] {{ background: transparent; border: 1px solid transparent; border-radius: 5px;
  color: {accent}; text-align: left; padding: 4px 6px; }}
QPushButton[role="link"]:disabled {{ color: {faded}; }}
QPushButton[role="link"]:hover {{ background: {raised}; }}
QPushButton[role="link"]:focus {{ border-color: {accent}; }}
QFrame[role="card"] {{ background: {raised}; border: 1px solid {border}; border-radius: 6px; }}
QFrame[role="frontier"] {{ background: {raised}; border: 1px solid {warn}; border-radius: 8px; }}
QFrame[role="failure"] {{ background: {raised}; border: 1px solid {bad}; border-radius: 8px; }}
QFrame[bar="info"] {{ background: {info_fill}; border: 0; border-bottom: 1px solid {border}; }}
QFrame[bar="warn"] {{ background: {warn_fill}; border: 0; border-bottom: 1px solid {border}; }}
QFrame[bar="bad"] {{ background: {bad_fill}; border: 0; border-bottom: 1px solid {border}; }}
QFrame[role="drop"] {{ border: 2px dashed {control}; border-radius: 12px; background: {surface}; }}
QFrame[role="drop"][over="true"] {{ border-color: {accent}; background: {info_fill}; }}
"""


def stylesheet(colours: Colours) -> str:
    """The application's stylesheet in the colours of a theme."""
    sizes = {"strong": STRONG, "title": TITLE_PT, "name_size": NAME_PT}
    values = sizes | {name: value for name, value in vars(colours).items() if isinstance(value, str)}
    icons = (resource_folder() / "icons").as_posix()
    return _TEMPLATE.format_map(values | {"icons": icons, "tone": "on-dark" if colours.is_dark else "on-light"})
