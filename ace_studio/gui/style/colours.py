"""Every colour of the window and of its graph in one place: palettes for light, dark and high contrast.

The rest of the window asks for a colour by its meaning (``text_dim``, ``good``), never by its value. Measured in
`tests/gui/style/test_colours.py`: text 4.5 : 1 on every fill that it stands on, outlines of controls and edges 3 : 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace


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


DARK = Colours(
    name="dark", is_dark=True,
    window="#16181d", surface="#1b1e25", raised="#252a34", border="#39404d", control="#737f92",
    text="#e8ebf0", text_dim="#9ea8b8", faded="#6d7787",
    accent="#5cb3ff", accent_fill="#1d3a58", on_accent="#0b1a29",
    good="#5fd08a", warn="#f2b84b", bad="#ff7b72",
    good_fill="#17382a", warn_fill="#40320f", bad_fill="#47201f", info_fill="#1d3448",
    series=("#5cb3ff", "#f2a65a", "#7fd1ae", "#c9a1f5", "#f27d9b", "#d6c95c", "#7fb8c9", "#a0a8b5"),
    precision={
        "fp32": "#675e6a", "fp16": "#ba62e3", "bf16": "#2f54bf", "int8-static": "#255236",
        "int8-dynamic": "#618e8b", "int8-weight": "#4e6500", "int4-weight": "#d5a07a", "fp8": "#692d69",
        "int8": "#255236", "fused": "#a9a4cb", "folded": "#74765f", "unknown": "#99842f",
    },
    frames=("#1d2027", "#232730", "#2a2f3a", "#313744"),
    block="#343b49", block_border="#8591a4", edge="#8591a4", match="#ffc53d",
    seam="#f2a33c", subgraph="#8fa3c4", eager="#ff8f87",
    families=(
        "#5269e0", "#7d2249", "#7d6323", "#548e66", "#ca923f", "#33398c", "#89a19f", "#384203",
        "#6c6887", "#8e9dca",
    ),
    scale=("#3a4a63", "#3f74a8", "#3f9a8f", "#b39b3c", "#d0702f", "#cf4444"),
)  # fmt: skip

LIGHT = Colours(
    name="light", is_dark=False,
    window="#eef1f5", surface="#ffffff", raised="#f4f6f9", border="#c9d1dc", control="#7b8594",
    text="#1c232e", text_dim="#566171", faded="#8c96a5",
    accent="#0b66c3", accent_fill="#d6e8fa", on_accent="#ffffff",
    good="#14743c", warn="#8a5a00", bad="#b3261e",
    good_fill="#dff3e6", warn_fill="#fdf0cf", bad_fill="#fce4e2", info_fill="#e2eefa",
    series=("#0b66c3", "#c65d00", "#0f7b5b", "#7b3fb5", "#b52a5b", "#7a6a00", "#2b7285", "#5b6675"),
    precision={
        "fp32": "#89a4cc", "fp16": "#b48ca6", "bf16": "#deebe5", "int8-static": "#7f8874",
        "int8-dynamic": "#9ac2af", "int8-weight": "#e9e7bc", "int4-weight": "#e5b861", "fp8": "#edb2d3",
        "int8": "#7f8874", "fused": "#a3ab82", "folded": "#9be3fe", "unknown": "#a47d45",
    },
    frames=("#ffffff", "#f1f4f8", "#e8edf4", "#dfe6ef"),
    block="#ffffff", block_border="#717c8d", edge="#717c8d", match="#d97a00",
    seam="#b85c00", subgraph="#5f7492", eager="#b3261e",
    families=(
        "#57c1fa", "#f3b4b5", "#9a9966", "#cff3e6", "#cbd48a", "#7987ce", "#dfe9ff", "#a38887",
        "#98c3cc", "#8e96a3",
    ),
    scale=("#dde6f2", "#b5d0ee", "#a4dccf", "#f0e08f", "#f5bd85", "#ef9292"),
)  # fmt: skip

_HIGH_CONTRAST = replace(
    DARK,
    name="high-contrast",
    window="#000000", surface="#000000", raised="#121212", border="#a8a8a8", control="#c8c8c8",
    text="#ffffff", text_dim="#dcdcdc", faded="#7a7a7a",
    accent="#ffe14d", accent_fill="#4a3d00", on_accent="#000000",
    good="#7dffb0", warn="#ffd166", bad="#ff9d96",
    frames=("#0c0c0c", "#161616", "#202020", "#2a2a2a"),
    block="#1c1c1c", block_border="#d0d0d0", edge="#d0d0d0",
    seam="#ffd166", subgraph="#ffffff", eager="#ff9d96",
)  # fmt: skip

INK_ON_LIGHT = "#10141a"
INK_ON_DARK = "#ffffff"
"""Text on a fill of the graph, whatever the theme."""

THEMES: dict[str, Colours] = {theme.name: theme for theme in (LIGHT, DARK, _HIGH_CONTRAST)}
"""One row per theme; ``system`` chooses light or dark by the desktop."""
