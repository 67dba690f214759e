"""Every colour of the window in one place: palettes for light, dark and high contrast.

The rest of the window asks for a colour by its meaning (``text_dim``, ``good``), never by its value.
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


_DARK = Colours(
    name="dark",
    is_dark=True,
    window="#16181d",
    surface="#1b1e25",
    raised="#252a34",
    border="#39404d",
    text="#e8ebf0",
    text_dim="#9ea8b8",
    faded="#626c7b",
    accent="#5cb3ff",
    accent_fill="#24476a",
    on_accent="#0b1a29",
    good="#5fd08a",
    warn="#f2b84b",
    bad="#ff7b72",
    good_fill="#17382a",
    warn_fill="#40320f",
    bad_fill="#47201f",
    info_fill="#1d3448",
    series=("#5cb3ff", "#f2a65a", "#7fd1ae", "#c9a1f5", "#f27d9b", "#d6c95c", "#7fb8c9", "#a0a8b5"),
    precision={
        "fp32": "#4a5a75",
        "fp16": "#8a5fc7",
        "bf16": "#3f74c4",
        "int8-static": "#2f9e6e",
        "int8-dynamic": "#2f8f8f",
        "int8-weight": "#7d9a2f",
        "int4-weight": "#b0722f",
        "fp8": "#b0497f",
        "int8": "#2f9e6e",
        "fused": "#5d6470",
        "folded": "#4c525c",
        "unknown": "#8f7d2c",
    },
)

_LIGHT = Colours(
    name="light",
    is_dark=False,
    window="#eef1f5",
    surface="#ffffff",
    raised="#f4f6f9",
    border="#c9d1dc",
    text="#1c232e",
    text_dim="#566171",
    faded="#98a2b0",
    accent="#0b66c3",
    accent_fill="#cfe3f8",
    on_accent="#ffffff",
    good="#14743c",
    warn="#8a5a00",
    bad="#b3261e",
    good_fill="#dff3e6",
    warn_fill="#fdf0cf",
    bad_fill="#fce4e2",
    info_fill="#e2eefa",
    series=("#0b66c3", "#c65d00", "#0f7b5b", "#7b3fb5", "#b52a5b", "#7a6a00", "#2b7285", "#5b6675"),
    precision={
        "fp32": "#c3cfe0",
        "fp16": "#d3bdf2",
        "bf16": "#a9c8f5",
        "int8-static": "#a3dcb8",
        "int8-dynamic": "#a5dcd9",
        "int8-weight": "#d3e3a0",
        "int4-weight": "#f5cf9f",
        "fp8": "#f2bcd8",
        "int8": "#a3dcb8",
        "fused": "#dcdfe3",
        "folded": "#e6e8eb",
        "unknown": "#ece0a0",
    },
)

_HIGH_CONTRAST = replace(
    _DARK,
    name="high-contrast",
    window="#000000",
    surface="#000000",
    raised="#121212",
    border="#a8a8a8",
    text="#ffffff",
    text_dim="#dcdcdc",
    faded="#7a7a7a",
    accent="#ffe14d",
    accent_fill="#5a4a00",
    on_accent="#000000",
    good="#7dffb0",
    warn="#ffd166",
    bad="#ff9d96",
)

THEMES: dict[str, Colours] = {theme.name: theme for theme in (_LIGHT, _DARK, _HIGH_CONTRAST)}
"""One row per theme; ``system`` chooses light or dark by the desktop."""
