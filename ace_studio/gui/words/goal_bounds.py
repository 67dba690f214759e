"""The bounds of a goal as the window shows them: their names, units and limits."""

from dataclasses import dataclass

from ace_studio.gui.style import number, tr, translate_fields
from ace_studio.records.recipes.recipe import Goal


@dataclass(frozen=True, kw_only=True)
class BoundRow:
    """One bound of the goal. The box shows the field times ``scale``."""

    field: str
    text: str
    suffix: str
    start: float
    """First value in the unit of the box, when the bound is switched on."""
    low: float
    high: float
    decimals: int
    scale: float = 1.0
    tip: str = ""

    def __post_init__(self) -> None:
        translate_fields(self, "text", "tip")


BOUNDS: tuple[BoundRow, ...] = (
    BoundRow(field="max_drop", text="accuracy drop at most", suffix=" %", start=1.0, low=0.0, high=100.0, decimals=2,
             scale=100.0, tip="Relative to eager fp32, by your own metric"),
    BoundRow(field="min_sqnr_db", text="fidelity at least", suffix=" dB", start=20.0, low=-20.0, high=200.0, decimals=1,
             tip="Signal-to-quantization-noise ratio of the outputs"),
    BoundRow(field="max_size_mb", text="size at most", suffix=" MB", start=20.0, low=0.001, high=1e6, decimals=3),
    BoundRow(field="max_latency_ratio", text="latency at most", suffix=" × eager", start=0.5, low=0.001, high=10.0,
             decimals=3, tip="As a fraction of the latency of eager fp32"),
)  # fmt: skip


def bound_words(goal: Goal) -> str:
    """The bounds of a goal: ``accuracy drop at most 1 %, size at most 20 MB``; empty if it has none."""
    parts = []
    for bound in BOUNDS:
        value = getattr(goal, bound.field)
        if value is not None:
            parts.append(f"{bound.text} {number(value * bound.scale, 'g')}{bound.suffix}")
    return ", ".join(parts)


def goal_words(goal: Goal) -> str:
    """A goal in a few words: its bounds, and what is optimised."""
    best = tr("best {optimize}", optimize=tr(goal.optimize))
    return f"{words}, {best}" if (words := bound_words(goal)) else best
