"""Compensation: each rounded op's results get a gain and an offset per channel, stored in its weight and its bias."""

import dataclasses
from collections.abc import Iterator

import torch
from torch import Tensor, fx

from ace_studio.engine.improve.job import ImproveJob, NoChange, Site, WeightChange, WeightEditor
from ace_studio.engine.ops.families import CLAMPS
from ace_studio.engine.ops.roles import is_convolution
from ace_studio.engine.quantize.flat_graph import OP_ID
from ace_studio.engine.quantize.simulate import Simulator, Step
from ace_studio.records.recipes.plan import Precision, WeightGranularity
from ace_studio.records.recipes.recipe import ImproveMethod

_GAINS = (0.5, 2.0)
"""Gains are kept between these: never negative, which would mirror an affine grid."""
_ALIKE = 20
"""So many values count as one in the error of a gain: neighbours in an image or a sequence are alike."""
_SMALLEST_SPREAD = 1e-6
"""A channel whose variance is a smaller part of its mean square is constant, up to rounding."""


def compensate(job: ImproveJob, changes: list[WeightChange]) -> WeightChange | NoChange:
    """Fit ``float = gain * rounded + offset`` per output channel by least squares, op after op.

    Each op reads what the corrected ones before it give. A channel's weights times a gain have the same integers, on a
    scale that is larger by that gain. So a plan with one scale for all channels gets offsets only.

    Source: Tang et al. 2025, arXiv:2505.20932, with a gain per channel in place of a low-rank matrix.
    """
    return _corrected(job, changes, ImproveMethod.COMPENSATE)


def correct_biases(job: ImproveJob, changes: list[WeightChange]) -> WeightChange | NoChange:
    """`compensate` with offsets only: the mean error of each op is subtracted by its bias.

    Source: Nagel et al. 2019, arXiv:1906.04721, section 4.2 (with data).
    """
    return _corrected(job, changes, ImproveMethod.BIAS_CORRECTION)


def _corrected(job: ImproveJob, changes: list[WeightChange], method: ImproveMethod) -> WeightChange | NoChange:
    editor, simulator = WeightEditor(job.captured, changes), job.simulator(changes)
    fits = {}
    for site in editor.sites:
        seen = _as_simulated(site, simulator)
        has_gain = method is ImproveMethod.COMPENSATE and _has_scale_per_channel(job, site)
        fit = _Fit(editor, seen, has_gain=has_gain and editor.can_scale_outputs(seen))
        if job.is_low(site.op_id) and (fit.has_gain or fit.shift):
            fits[site.op_id] = fit
    if not fits:
        return NoChange("no rounded op has a bias of its own")
    done = 0

    def correct(step: Step) -> list[Tensor]:
        nonlocal done
        rounded, fit = step.run(), fits.get(step.op_id)
        if fit is None:
            return rounded
        job.reporter.advance(done / len(fits), f"{method} of {step.op_id}")
        done += 1
        return fit.correct(step, rounded)

    job.lockstep(changes, simulator, correct)
    return editor.change(method, is_exact=False)


def _as_simulated(site: Site, simulator: Simulator) -> Site:
    """The site without a norm that stays an op of its own."""
    is_folded = site.norm is None or site.norm.meta[OP_ID] in simulator.folded
    return site if is_folded else dataclasses.replace(site, norm=None)


def _has_scale_per_channel(job: ImproveJob, site: Site) -> bool:
    is_weight_only = job.plan.precision_of(site.op_id) not in (Precision.INT8_STATIC, Precision.INT8_DYNAMIC)
    return is_weight_only or job.plan.scheme_of(site.op_id).weights is WeightGranularity.PER_CHANNEL


class _Fit:
    """The gain and the offset of one op."""

    def __init__(self, editor: WeightEditor, site: Site, *, has_gain: bool) -> None:
        self.has_gain = has_gain
        self.shift = editor.shift_name(site)
        """Name of what the offset is added to; empty: there is no offset."""
        self._editor, self._site = editor, site
        self._axis = 1 if is_convolution(str(site.node.target)) else -1

    def correct(self, step: Step, rounded: list[Tensor]) -> list[Tensor]:
        """Store what fits best, and give the results that follow from it."""
        gain, offset = self._solve(step, rounded)
        if not bool((gain.isfinite() & offset.isfinite()).all()):
            return rounded
        if self.has_gain:
            self._editor.scale_outputs(self._site, gain, owner=step.op_id)
        if self.shift:
            self._editor.set(self.shift, self._editor.tensor(self.shift) + offset, owner=step.op_id)
        shape = [1] * rounded[0].dim()
        shape[self._axis] = -1
        return [one * gain.reshape(shape) + offset.reshape(shape) for one in rounded]

    def _solve(self, step: Step, rounded: list[Tensor]) -> tuple[Tensor, Tensor]:
        """Gain and offset [C], float32, with the smallest sum of squares over the values that a clamp lets pass.

        A gain is moved back towards 1 by its own error: James and Stein 1961, the positive part.
        """
        total = torch.stack([self._sums(*one) for one in self._values(step, rounded)]).sum(0)
        count = total[0].clamp(min=1.0)
        mean_x, mean_y, xx, xy, yy = total[1:] / count
        if not self.shift:
            mean_x, mean_y = torch.zeros_like(xx), torch.zeros_like(xx)
        gain, offset = torch.ones_like(xx), torch.zeros_like(xx)
        if self.has_gain:
            spread, covariance = xx - mean_x.square(), xy - mean_x * mean_y
            is_known = (count > 2 * _ALIKE) & (spread > _SMALLEST_SPREAD * xx)
            change = torch.where(is_known, covariance / spread, 1.0).clamp(*_GAINS) - 1.0
            rest = (yy - mean_y.square() - covariance.square() / spread).clamp(min=0.0)
            kept = 1.0 - _ALIKE * rest / ((count - 2 * _ALIKE) * spread * change.square())
            gain = torch.where(is_known & (change != 0.0), 1.0 + change * kept.clamp(min=0.0), 1.0)
        if self.shift:
            offset = mean_y - gain * mean_x
        return gain.float(), offset.float()

    def _values(self, step: Step, rounded: list[Tensor]) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Rounded and float results and the weight of each, per example: [C, values], float64."""
        readers = list(step.node.users)
        clamp = readers[0] if len(readers) == 1 and str(readers[0].target) in CLAMPS else None
        for x, y in zip(rounded, step.wide, strict=True):
            weight = torch.ones_like(y) if clamp is None else (_passes(clamp, x) | _passes(clamp, y)).float()
            one, other, third = (value.movedim(self._axis, 0).flatten(1).double() for value in (x, y, weight))
            yield one, other, third

    @staticmethod
    def _sums(x: Tensor, y: Tensor, weight: Tensor) -> Tensor:
        return torch.stack([(weight * one).sum(1) for one in (torch.ones_like(x), x, y, x * x, x * y, y * y)])


def _passes(clamp: fx.Node, value: Tensor) -> Tensor:
    """Where a clamp gives what it reads."""
    if any(isinstance(argument, fx.Node) for argument in clamp.args[1:]):
        return torch.ones_like(value, dtype=torch.bool)
    clamped: Tensor = clamp.target(value.clone(), *clamp.args[1:], **clamp.kwargs)  # type: ignore[operator]
    return clamped == value
