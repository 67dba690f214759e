"""Colours of the graph: those of the theme, and colourings by a property of the ops."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from ace_studio.gui.graph_layout.sizes import short_op
from ace_studio.records.graph import GraphTable, OpKind
from ace_studio.records.ops import OpFamily, family_of


@dataclass(frozen=True, kw_only=True)
class GraphColours:
    """The colours of the graph in one theme, each as ``#rrggbb``."""

    background: str
    frames: tuple[str, ...]
    """Fill of open blocks, one per depth; the last serves for deeper ones too."""
    frame_border: str
    block: str
    """Fill of closed blocks, and of ops without a category."""
    block_border: str
    text: str
    text_dim: str
    edge: str
    accent: str
    """Selection, and the edges at it."""
    match: str
    """Matches of a search."""
    seam: str
    """Breaks: the line between two subgraphs, and its number."""
    subgraph: str
    """Edge of a subgraph."""
    eager: str
    """Hatching of a subgraph that stays eager."""
    panel: str
    """Fill of the map, the legend and the search field."""
    panel_border: str
    families: tuple[str, ...]
    """One colour per `OpFamily`."""
    scale: tuple[str, ...]
    """From little to much."""


DARK = GraphColours(
    background="#16181d",
    frames=("#1d2027", "#232730", "#2a2f3a", "#313744"),
    frame_border="#3c4352",
    block="#343b49",
    block_border="#4d576a",
    text="#e8ebf0",
    text_dim="#9aa4b5",
    edge="#667085",
    accent="#5cb3ff",
    match="#ffc53d",
    seam="#f2a33c",
    subgraph="#8fa3c4",
    eager="#ff8f87",
    panel="#1f232b",
    panel_border="#3c4352",
    families=(
        "#3f74c4",
        "#8a5fc7",
        "#99601f",
        "#26796e",
        "#417b3c",
        "#a8497f",
        "#596579",
        "#7d6c22",
        "#6b6f78",
        "#2d7399",
    ),
    scale=("#3a4a63", "#3f74a8", "#3f9a8f", "#b39b3c", "#d0702f", "#cf4444"),
)

LIGHT = GraphColours(
    background="#f6f7f9",
    frames=("#ffffff", "#f1f4f8", "#e8edf4", "#dfe6ef"),
    frame_border="#c3ccd9",
    block="#ffffff",
    block_border="#a9b5c6",
    text="#1c232e",
    text_dim="#5b6675",
    edge="#8a96a8",
    accent="#0b6bcb",
    match="#d97a00",
    seam="#b85c00",
    subgraph="#5f7492",
    eager="#b3261e",
    panel="#ffffff",
    panel_border="#c3ccd9",
    families=(
        "#a9c8f5",
        "#d3bdf2",
        "#f5cf9f",
        "#a5dcd4",
        "#bfe0b4",
        "#f2bcd8",
        "#d3dae4",
        "#ece0a0",
        "#dcdfe3",
        "#aadcf0",
    ),
    scale=("#dde6f2", "#b5d0ee", "#a4dccf", "#f0e08f", "#f5bd85", "#ef9292"),
)


@dataclass(frozen=True, kw_only=True)
class Colouring:
    """A property of ops shown as colour. Colour never stands alone: every category has a letter too.

    Ops that `value_of` does not name have no category and keep the colour of a block.
    """

    label: str
    """Title of the legend, such as ``planned precision``."""
    categories: tuple[str, ...]
    """Names for the legend, in its order."""
    colours: tuple[str, ...]
    """``#rrggbb`` of each category."""
    letters: tuple[str, ...]
    """One or two letters for each category; empty where the box shows it already."""
    value_of: Mapping[str, int] = field(default_factory=dict)
    """Op id -> index into `categories`."""

    def __post_init__(self) -> None:
        if not len(self.categories) == len(self.colours) == len(self.letters):
            msg = "a colouring needs one colour and one letter for each category"
            raise ValueError(msg)

    @classmethod
    def from_labels(
        cls,
        label: str,
        labels: Mapping[str, str],
        *,
        colours: Mapping[str, str] | Sequence[str] = LIGHT.families,
        letters: Mapping[str, str] | None = None,
    ) -> Colouring:
        """A colouring from op id -> category name; categories in order of first use.

        Args:
            label: Title of the legend.
            labels: Category of each op.
            colours: Colour of each category, or colours to take turns.
            letters: Badge of each category; the start of its name where missing.
        """
        categories = tuple(dict.fromkeys(labels.values()))
        index = {category: at for at, category in enumerate(categories)}
        if isinstance(colours, Mapping):
            spare = LIGHT.families
            chosen = tuple(colours.get(name, spare[at % len(spare)]) for at, name in enumerate(categories))
        else:
            chosen = tuple(colours[at % len(colours)] for at in range(len(categories)))
        known = letters or {}
        badges = tuple(known.get(name, name[:1].upper()) for name in categories)
        return cls(
            label=label,
            categories=categories,
            colours=chosen,
            letters=badges,
            value_of={op_id: index[name] for op_id, name in labels.items()},
        )

    @classmethod
    def from_numbers(
        cls, label: str, numbers: Mapping[str, float], *, unit: str = "", colours: Sequence[str] = LIGHT.scale
    ) -> Colouring:
        """A colouring from op id -> number, in equal intervals from 0 to the largest."""
        steps = len(colours)
        top = max((value for value in numbers.values() if math.isfinite(value)), default=0.0) or 1.0
        limits = [top * step / steps for step in range(steps + 1)]
        names = tuple(f"{low:.3g} - {high:.3g} {unit}".rstrip() for low, high in pairwise(limits))
        value_of = {
            op_id: min(steps - 1, max(0, int(value / top * steps)))
            for op_id, value in numbers.items()
            if math.isfinite(value)
        }
        letters = tuple(str(step + 1) for step in range(steps))
        return cls(label=label, categories=names, colours=tuple(colours), letters=letters, value_of=value_of)


def family_colouring(table: GraphTable, colours: GraphColours) -> Colouring:
    """The default colouring: the kind of each op. The op's name serves as its letter."""
    place = {family: at for at, family in enumerate(OpFamily)}
    families = {op: place[family_of(short_op(op))] for op in set(table.op)}
    value_of = {
        op_id: families[op] if kind is OpKind.OP else place[OpFamily.BORDER]
        for op_id, op, kind in zip(table.op_id, table.op, table.kind, strict=True)
        if kind is not OpKind.BREAK
    }
    return Colouring(
        label="kind of op",
        categories=tuple(OpFamily),
        colours=colours.families,
        letters=("",) * len(OpFamily),
        value_of=value_of,
    )


def luminance(colour: str) -> float:
    """Relative luminance of ``#rrggbb``, 0 black to 1 white. Source: WCAG 2.1, relative luminance."""
    channels = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def text_on(fill: str) -> str:
    """Black or white, whichever has more contrast on the fill."""
    return "#10141a" if luminance(fill) > 0.179 else "#ffffff"


def blend(over: str, under: str, *, share: float) -> str:
    """`over` at this share of opacity on `under`."""
    pairs = ((int(over[at : at + 2], 16), int(under[at : at + 2], 16)) for at in (1, 3, 5))
    return "#" + "".join(f"{round(a * share + b * (1 - share)):02x}" for a, b in pairs)
