"""The graph's colours in each theme. Separate from `theme`, because the graph is loaded late."""

from __future__ import annotations

from dataclasses import replace

from ace_studio.gui.graph_view.colours import DARK, LIGHT, GraphColours
from ace_studio.gui.style.colours import Colours

_HIGH_CONTRAST = replace(
    DARK,
    background="#000000",
    frames=("#0c0c0c", "#161616", "#202020", "#2a2a2a"),
    frame_border="#b0b0b0",
    block="#1c1c1c",
    block_border="#d0d0d0",
    text="#ffffff",
    text_dim="#e0e0e0",
    edge="#d0d0d0",
    accent="#ffe14d",
    seam="#ffd166",
    subgraph="#ffffff",
    eager="#ff9d96",
    panel="#000000",
    panel_border="#b0b0b0",
)
_BY_THEME: dict[str, GraphColours] = {"dark": DARK, "light": LIGHT, "high-contrast": _HIGH_CONTRAST}


def graph_colours(colours: Colours) -> GraphColours:
    """The graph's colours in a theme; search matches and the selection use the window's accent."""
    return replace(_BY_THEME[colours.name], accent=colours.accent)
