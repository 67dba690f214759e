"""What fine-tuning did: the content of ``finetune`` in ``result.json``."""

from __future__ import annotations

import msgspec


class FinetuneEpoch(msgspec.Struct, frozen=True, kw_only=True):
    """One pass over the data."""

    epoch: int
    """0 is the state before training."""
    loss: float | None
    """Mean training loss; None for epoch 0."""
    score: float
    """What decides: see `FinetuneReport.score_name`."""
    seconds: float


class FinetuneReport(msgspec.Struct, frozen=True, kw_only=True):
    """How it went and what was kept."""

    method: str
    score_name: str
    """``metric``, ``held-out SQNR`` (dB against the original) or ``held-out loss``."""
    higher_is_better: bool
    before: float
    after: float
    """Score of what was kept: never worse than `before`."""
    kept: bool
    """Whether the trained weights were better and are used."""
    reason: str
    """Why they were kept or not, in one sentence."""
    best_epoch: int = 0
    history: tuple[FinetuneEpoch, ...] = ()
    examples: int = 0
    """Trained on."""
    held_out: int = 0
    """Examples kept out of training, to judge by."""
    layers: int = 0
    """With weights and inputs rounded in training (``qat``)."""
    stopped: str = ""
    """Why it ended before the last epoch; empty if it did not."""
    seconds: float = 0.0
