"""Colourings of the graph by a property of the ops. The colours are those of the theme."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import compress, pairwise

import numpy as np
import numpy.typing as npt

from ace_studio.gui.graph_layout.sizes import short_op
from ace_studio.gui.style import INK_ON_DARK, INK_ON_LIGHT, LIGHT, Colours, number, tr
from ace_studio.records.by_identity import kept_by_identity
from ace_studio.records.graph import GraphTable, OpKind
from ace_studio.records.ops import OpFamily, family_of


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
    """One or two letters for each category, different ones and none of them empty."""
    value_of: Mapping[str, int] = field(default_factory=dict)
    """Op id -> index into `categories`."""
    by_row: Sequence[int] | None = None
    """Index into `categories` of each row, -1 for none; if it is known, `value_of` is not looked at."""

    def __post_init__(self) -> None:
        is_complete = len(self.categories) == len(self.colours) == len(self.letters)
        if not is_complete or len(set(self.letters) - {""}) < len(self.letters):
            msg = tr("a colouring needs one colour and one letter for each category")
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
        """A colouring from op id -> category name; see `from_texts`."""
        made = cls.from_texts(label, tuple(labels.values()), colours=colours, letters=letters)
        return replace(made, value_of=dict(zip(labels, made.by_row or (), strict=True)), by_row=None)

    @classmethod
    def from_texts(
        cls,
        label: str,
        texts: Sequence[str],
        *,
        colours: Mapping[str, str] | Sequence[str] = LIGHT.families,
        letters: Mapping[str, str] | None = None,
    ) -> Colouring:
        """A colouring from the category name of each row; categories in order of first use.

        Args:
            label: Title of the legend.
            texts: Category of each row; empty for none.
            colours: Colour of each category, or colours to take turns.
            letters: Badge of each category; where missing, a letter of its name that no other has.
        """
        categories = tuple(name for name in dict.fromkeys(texts) if name)
        index = {"": -1} | {category: at for at, category in enumerate(categories)}
        if isinstance(colours, Mapping):
            spare = LIGHT.families
            chosen = tuple(colours.get(name, spare[at % len(spare)]) for at, name in enumerate(categories))
        else:
            chosen = tuple(colours[at % len(colours)] for at in range(len(categories)))
        badges = _badges(categories, letters or {})
        by_row = [index[text] for text in texts]
        return cls(label=label, categories=categories, colours=chosen, letters=badges, by_row=by_row)

    @classmethod
    def from_numbers(
        cls,
        label: str,
        numbers: Mapping[str, float] | npt.NDArray[np.float64],
        *,
        unit: str = "",
        colours: Sequence[str] = LIGHT.scale,
    ) -> Colouring:
        """A colouring from op id -> number, or a number per row, in equal intervals from 0 to the largest."""
        steps = len(colours)
        values = numbers if isinstance(numbers, np.ndarray) else np.array(list(numbers.values()), dtype=np.float64)
        known = np.isfinite(values)
        top = float(values[known].max(initial=0.0)) or 1.0
        limits = [top * step / steps for step in range(steps + 1)]
        names = tuple(f"{number(low, '.3g')} - {number(high, '.3g')} {unit}".rstrip() for low, high in pairwise(limits))
        places = np.clip(np.where(known, values, 0.0) / top * steps, 0, steps - 1).astype(int)
        made = partial(
            cls, label=label, categories=names, colours=tuple(colours),
            letters=tuple(str(step + 1) for step in range(steps)),
        )  # fmt: skip
        if isinstance(numbers, np.ndarray):
            return made(by_row=np.where(known, places, -1).tolist())
        return made(value_of=dict(compress(zip(numbers, places.tolist(), strict=True), known.tolist())))


def _badges(categories: Sequence[str], known: Mapping[str, str]) -> tuple[str, ...]:
    """A badge for each category: the known one, else the first letter of its name that is free, else a number."""
    given: dict[str, str] = {}
    for name in categories:
        if name in known and known[name] not in given.values():
            given[name] = known[name]
    for name in categories:
        if name not in given:
            free = [sign for sign in name.upper() if sign.isalnum() and sign not in given.values()]
            given[name] = free[0] if free else str(len(given))
    return tuple(given[name] for name in categories)


FAMILY_LETTERS: dict[OpFamily, str] = {
    OpFamily.PRODUCT: "C", OpFamily.ATTENTION: "R", OpFamily.NORM: "N", OpFamily.ACTIVATION: "A",
    OpFamily.REDUCTION: "P", OpFamily.LOOKUP: "E", OpFamily.SHAPE: "S", OpFamily.CONSTANT: "K", OpFamily.OTHER: "O",
    OpFamily.BORDER: "I",
}  # fmt: skip
"""The badge of each kind of op."""


@kept_by_identity
def family_colouring(table: GraphTable, colours: Colours) -> Colouring:
    """The default colouring: the kind of each op."""
    place = {family: at for at, family in enumerate(OpFamily)}
    families = {op: place[family_of(short_op(op))] for op in set(table.op)}
    by_row = [families[op] for op in table.op]
    for row in set(range(len(table))).difference(table.op_rows()):
        by_row[row] = -1 if table.kind[row] is OpKind.BREAK else place[OpFamily.BORDER]
    return Colouring(
        label=tr("kind of op"),
        categories=tuple(tr(family) for family in OpFamily),
        colours=colours.families,
        letters=tuple(FAMILY_LETTERS[family] for family in OpFamily),
        by_row=by_row,
    )


def luminance(colour: str) -> float:
    """Relative luminance of ``#rrggbb``, 0 black to 1 white. Source: WCAG 2.1, relative luminance."""
    channels = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def text_on(fill: str) -> str:
    """Black or white, whichever has more contrast on the fill."""
    return INK_ON_LIGHT if luminance(fill) > 0.179 else INK_ON_DARK


def blend(over: str, under: str, *, share: float) -> str:
    """`over` at this share of opacity on `under`."""
    pairs = ((int(over[at : at + 2], 16), int(under[at : at + 2], 16)) for at in (1, 3, 5))
    return "#" + "".join(f"{round(a * share + b * (1 - share)):02x}" for a, b in pairs)
