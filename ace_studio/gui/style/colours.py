"""Every colour of the window and of its graph by its meaning; `resources/themes.toml` has the values.

The rest of the window asks for a colour by its meaning (``text_dim``, ``good``), never by its value. Measured in
`tests/gui/style/test_colours.py`: text 4.5 : 1 on every fill that it stands on, outlines of controls and edges 3 : 1.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from ace_studio.records.places import resource_folder


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


def _themes() -> dict[str, Colours]:
    tables: dict[str, dict[str, Any]] = tomllib.loads((resource_folder() / "themes.toml").read_text(encoding="utf-8"))
    whole = {name: tables.get(table.pop("from", ""), {}) | table for name, table in tables.items()}
    return {name: msgspec.convert({"name": name, **table}, Colours) for name, table in whole.items()}


THEMES = _themes()
"""One row per theme; ``system`` chooses light or dark by the desktop."""
DARK, LIGHT = THEMES["dark"], THEMES["light"]
