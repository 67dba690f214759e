"""The report of a fine-tuning: ``finetune`` in ``result.json``."""

import msgspec

HELD_OUT_SQNR = "held-out SQNR"
"""A value of `FinetuneReport.score_name`."""


class FinetuneEpoch(msgspec.Struct, frozen=True, kw_only=True):
    """One pass over the data."""

    epoch: int
    """0 is the state before training."""
    loss: float | None
    """Mean training loss; None for epoch 0, and where it was not finite."""
    score: float | None
    """The score that selects the weights, see `FinetuneReport.score_name`; None if the weights were not finite."""
    seconds: float


class FinetuneReport(msgspec.Struct, frozen=True, kw_only=True):
    """The scores before and after, and whether the trained weights are used."""

    method: str
    score_name: str
    """``metric``, ``held-out SQNR`` (dB against the original) or ``held-out loss``."""
    higher_is_better: bool
    before: float
    after: float
    """Score of the weights that are used: never worse than `before`."""
    kept: bool
    """Whether the trained weights were better and are used."""
    reason: str
    """Why, in one sentence."""
    best_epoch: int = 0
    history: tuple[FinetuneEpoch, ...] = ()
    examples: int = 0
    """In the training data."""
    held_out: int = 0
    """Examples that are not trained on but give the score."""
    layers: int = 0
    """Layers whose weights and inputs are rounded in training (``qat``)."""
    stopped: str = ""
    """Why it ended before the last epoch; empty if it did not."""
    seconds: float = 0.0
