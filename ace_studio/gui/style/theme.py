"""The theme: the present colours, and how they are applied to Qt.

Every colour of the window and of its graph is in one place: ``resources/themes.json``, for each theme. The rest of the
window asks for a colour by its meaning (``text_dim``, ``good``), never by its value. Measured in
`tests/gui/style/test_colours.py`: text 4.5 : 1 on every fill that it stands on, outlines of controls and edges 3 : 1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontDatabase, QPalette
from PySide6.QtWidgets import QApplication

from ace_studio.records.places import resource_folder

STYLE = "Fusion"
"""Qt's style: the same on every system."""

STRONG = 600
"""Weight of headings and of what stands out in a line; the rest has the desktop's."""
TITLE_PT = 15
NAME_PT = 12
"""The name of the open model."""


class Theme(QObject):
    """The present theme. Widgets that paint by themselves listen to `changed`."""

    changed = Signal(object)
    """The new `Colours`."""

    def __init__(self, application: QApplication, name: str = "system") -> None:
        super().__init__(application)
        self.application = application
        self._name = name
        self.colours = self._resolve()
        if application.property("style") != STYLE:
            application.setStyle(STYLE)
        application.styleHints().colorSchemeChanged.connect(self._follow_system)
        self._apply()

    def choose(self, name: str) -> None:
        """Use another theme: ``system`` or a row of `THEMES`."""
        self._name = name
        self._follow_system()

    def _follow_system(self) -> None:
        colours = self._resolve()
        if colours is not self.colours:
            self.colours = colours
            self._apply()
            self.changed.emit(colours)

    def _resolve(self) -> Colours:
        if self._name in THEMES:
            return THEMES[self._name]
        scheme = self.application.styleHints().colorScheme()
        return THEMES["light" if scheme == Qt.ColorScheme.Light else "dark"]

    def _apply(self) -> None:
        self.application.setPalette(_palette(self.colours))
        self.application.setStyleSheet(stylesheet(self.colours))


def monospace() -> QFont:
    """The font of code, paths and logs.

    "monospace" alone may be answered with a proportional font where the fixed ones lack the letters of the user's
    language (Hebrew); the fonts named after it do not depend on the language.
    """
    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
    font.setFamilies([font.family(), "DejaVu Sans Mono", "Liberation Mono", "Noto Sans Mono"])
    return font


def _palette(colours: Colours) -> QPalette:
    role = QPalette.ColorRole
    values = {
        role.Window: colours.window,
        role.WindowText: colours.text,
        role.Base: colours.surface,
        role.AlternateBase: colours.raised,
        role.Text: colours.text,
        role.PlaceholderText: colours.text_dim,
        role.Button: colours.raised,
        role.ButtonText: colours.text,
        role.BrightText: colours.bad,
        role.Highlight: colours.accent_fill,
        role.HighlightedText: colours.text,
        role.Accent: colours.accent,
        role.Link: colours.accent,
        role.LinkVisited: colours.accent,
        role.ToolTipBase: colours.raised,
        role.ToolTipText: colours.text,
        role.Mid: colours.border,
    }
    palette = QPalette(QColor(colours.raised), QColor(colours.window))
    for place, colour in values.items():
        palette.setColor(place, QColor(colour))
    for place in (role.WindowText, role.Text, role.ButtonText):
        palette.setColor(QPalette.ColorGroup.Disabled, place, QColor(colours.faded))
    return palette


def stylesheet(colours: Colours) -> str:
    """The application's stylesheet in the colours of a theme: ``resources/window.qss`` with its names replaced."""
    values = {name: value for name, value in vars(colours).items() if isinstance(value, str)}
    values |= {"strong": str(STRONG), "title": str(TITLE_PT), "name_size": str(NAME_PT)}
    values |= {"icons": (resource_folder() / "icons").as_posix(), "tone": "on-dark" if colours.is_dark else "on-light"}
    template = (resource_folder() / "window.qss").read_text(encoding="utf-8")
    return re.sub(r"\{(\w+)\}", lambda found: values[found[1]], template)


@dataclass(frozen=True, kw_only=True)
class Colours:
    """The colours of one theme, each as ``#rrggbb``, by meaning."""

    name: str
    is_dark: bool
    window: str
    """Behind everything."""
    surface: str
    """Panels, lists and tables."""
    raised: str
    """Bars, headers and buttons on a surface."""
    border: str
    """Hairlines between areas, which nobody needs to see."""
    control: str
    """Outlines of fields, buttons and check boxes."""
    text: str
    text_dim: str
    faded: str
    """Disabled controls."""
    accent: str
    accent_fill: str
    """Selected rows."""
    on_accent: str
    """Text on `accent`."""
    good: str
    warn: str
    bad: str
    good_fill: str
    warn_fill: str
    bad_fill: str
    info_fill: str
    series: tuple[str, ...]
    """Lines and bars of plots, in order."""
    precision: Mapping[str, str]
    """Precision or fate of an op -> colour in graph, tables and plots."""
    frames: tuple[str, ...]
    """The graph's open blocks, one fill per depth; the last serves for deeper ones too."""
    block: str
    """Fill of closed blocks, and of ops without a category."""
    block_border: str
    edge: str
    match: str
    """Matches of a search."""
    seam: str
    """Breaks: the line between two subgraphs, and its number."""
    subgraph: str
    """Edge of a subgraph."""
    eager: str
    """Hatching of a subgraph that stays eager."""
    families: tuple[str, ...]
    """One colour per `OpFamily`, told apart by colour-blind eyes too."""
    scale: tuple[str, ...]
    """From little to much."""


INK_ON_LIGHT = "#10141a"
INK_ON_DARK = "#ffffff"
"""Text on a fill of the graph, whatever the theme."""

THEMES = {
    theme.name: theme
    for theme in msgspec.json.decode((resource_folder() / "themes.json").read_bytes(), type=tuple[Colours, ...])
}
"""One row per theme; ``system`` chooses light or dark by the desktop."""
DARK, LIGHT = THEMES["dark"], THEMES["light"]
