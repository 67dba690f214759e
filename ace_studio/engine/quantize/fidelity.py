"""How close two sets of outputs are, as one number."""

import math
from collections.abc import Iterator, Sequence
from typing import TypeVar

import torch
from torch import Tensor

from ace_studio.engine.flow import measured_places

SQNR_CAP_DB = 200.0
"""Given for identical outputs, whose ratio is infinite; double arithmetic on float32 values cannot resolve more."""
SMALLEST_GAIN_DB = 0.05
"""An improvement that gains less is not kept: less is chance."""
_LEAST_SIGNAL = 1e-10
"""An output whose centred part has this share of its energy, or less, does not depend on the input."""
_LEAST_SAMPLES = 4
_Example = TypeVar("_Example")


def split_examples(examples: Sequence[_Example]) -> tuple[list[_Example], list[_Example]]:
    """Examples to work with, and held-out ones to judge by: every fourth, or the last of two or three."""
    held = range(3, len(examples), 4) or [len(examples) - 1]
    return [one for at, one in enumerate(examples) if at not in held], [examples[at] for at in held]


def decibels(signal: float, noise: float) -> float:
    """``10 log10(signal / noise)`` within [-200, 200].

    200 without noise; -200 without signal, or where the noise is not finite.
    """
    if noise <= 0.0:
        return SQNR_CAP_DB
    if signal <= 0.0 or not math.isfinite(noise):
        return -SQNR_CAP_DB
    return max(-SQNR_CAP_DB, min(SQNR_CAP_DB, 10.0 * math.log10(signal / noise)))


def measured_sqnr_db(reference: Sequence[Tensor], candidate: Sequence[Tensor]) -> float:
    """`sqnr_db` of the flat outputs that a fidelity is about (`measured_places`): no indices beside real numbers."""
    places = measured_places(reference)
    return sqnr_db([reference[place] for place in places], [candidate[place] for place in places])


def sqnr_db(reference: Sequence[Tensor], candidate: Sequence[Tensor]) -> float:
    """Signal-to-quantization-noise ratio of the worst output.

    ``10 log10(sum(reference^2) / sum((reference - candidate)^2))`` for each pair of tensors, in double precision; the
    smallest of them, so that a small output is not drowned by a large one. Places where the reference is not finite
    are left out; where only the candidate is not finite the answer is -200.

    Shapes: both lists hold the same number of tensors, pairwise of the same shape. Unit: dB in [-200, 200].
    Source: Widrow and Kollar 2008, Quantization Noise, chapter 1.
    Raises: ValueError if the lists or the shapes differ.
    """
    if len(reference) != len(candidate):
        raise ValueError(f"{len(candidate)} outputs to compare with {len(reference)}")
    ratios = [_one_sqnr_db(one, other) for one, other in zip(reference, candidate, strict=True)]
    return min(ratios, default=SQNR_CAP_DB)


def fidelity_db(references: Sequence[Sequence[Tensor]], results: Sequence[Sequence[Tensor]]) -> float | None:
    """What is left of what the outputs say: as `measured_sqnr_db` of all examples, but an output's mean is no signal.

    Random answers around 0.5 beside the right ones, which are near 0.5 too, have an SQNR of 30 dB and a fidelity of 0.
    The mean is taken over the examples, for each place of an output, where four of them or more have one shape; else,
    or where the examples are all alike, it is that of all places. An output that is one number everywhere says nothing
    and is left out; None if none is left.

    Shapes: example -> flat outputs, alike in both. Unit: dB in [-200, 200].
    """
    found = []
    for place in measured_places(references[0]):
        rows = [_as_real(outputs[place]) for outputs in references]
        others = torch.cat([_as_real(outputs[place]).reshape(-1) for outputs in results])
        wide = torch.cat([row.reshape(-1) for row in rows])
        finite = wide.isfinite()
        energy = float(wide[finite].square().sum())
        signals = (float((wide - centre)[finite].square().sum()) for centre in _centres(rows))
        if signal := next((one for one in signals if one > _LEAST_SIGNAL * energy), 0.0):
            is_finite = bool(others[finite].isfinite().all())
            noise = float((wide - others)[finite].square().sum()) if is_finite else math.inf
            found.append(decibels(signal, noise))
    return min(found, default=None)


def _centres(rows: Sequence[Tensor]) -> Iterator[Tensor]:
    """What an output is on average, flat: for each of its places in all examples, then of all places."""
    known = [row.where(row.isfinite(), math.nan) for row in rows]
    samples = sum(len(row) if row.dim() > 1 else 0 for row in rows)
    if samples >= _LEAST_SAMPLES and len({row.shape[1:] for row in rows}) == 1:
        mean = torch.cat(known).nanmean(0, keepdim=True)
        yield torch.cat([mean.expand_as(row).reshape(-1) for row in rows])
    flat = torch.cat([row.reshape(-1) for row in known])
    yield (flat.nanmean() if len(flat) > 1 else torch.zeros(())).expand_as(flat)  # one number cannot vary


def _one_sqnr_db(reference: Tensor, candidate: Tensor) -> float:
    if reference.shape != candidate.shape:
        raise ValueError(f"shape {tuple(candidate.shape)} to compare with {tuple(reference.shape)}")
    wide, other = (_as_real(one) for one in (reference, candidate))
    finite = wide.isfinite()
    if bool((finite & ~other.isfinite()).any()):
        return -SQNR_CAP_DB
    wide, other = wide[finite], other[finite]
    return decibels(float(wide.square().sum()), float((wide - other).square().sum()))


def _as_real(tensor: Tensor) -> Tensor:
    plain = tensor.detach().cpu()
    if plain.is_complex():
        plain = plain.resolve_conj().view(plain.real.dtype)
    return plain.double()
