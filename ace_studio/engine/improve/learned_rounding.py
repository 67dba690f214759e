"""Learned rounding: gradients on each op's results find which weights to round up or down, and the scales.

Matrix products are learned by coordinate descent instead, which finds more in less time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, fx

from ace_studio.engine.improve.descent import IntegerGrid, Quadratic, descend
from ace_studio.engine.improve.gptq import WIDEST
from ace_studio.engine.improve.job import ImproveJob, NoChange, Site, WeightChange, WeightEditor
from ace_studio.engine.ops.families import CLAMPS, LINEAR_OPS
from ace_studio.engine.quantize.affine import SMALLEST_SCALE
from ace_studio.engine.quantize.fake_quantize import WeightGroups, weight_groups
from ace_studio.engine.quantize.flat_graph import constant_of
from ace_studio.engine.quantize.simulate import Step
from ace_studio.records.recipes.plan import WEIGHT_ONLY, Precision
from ace_studio.records.recipes.recipe import ImproveMethod

STEPS = 200
"""Steps per op, where there is time; with fewer than `_FEWEST` an op is left."""
_FEWEST = 20
_BETWEEN_LOOKS = 10
"""After so many steps each the error on more examples is looked at; the best weight is kept."""
_RATE, _COVER_RATE = 0.01, 0.001
"""How far a step moves a weight, in its grid's steps, and how much of its range a grid covers."""
_NARROWEST = 0.5
"""A grid covers at least this part of its weights' range."""
_ROWS = 512
"""Rows that a step looks at: inputs of a matrix product."""
_VALUES = 1 << 18
"""About so many values of a convolution's result are what a step looks at, one item of a batch at least."""
_LOOKS = 4
"""The error is looked at on so many times as many values as a step looks at."""
_DAMPING = 0.01
"""Part of the mean square of the inputs that counts as noise of its own: weights stay near where data say little."""
_INTEGERS = frozenset({Precision.INT8_STATIC, Precision.INT8_DYNAMIC, *WEIGHT_ONLY})
clock = time.monotonic
"""Seconds; a test has its own."""


def learn_rounding(job: ImproveJob, changes: list[WeightChange]) -> WeightChange | NoChange:
    """Round the weights of all products so that the results come closest to the float ones, op after op.

    Each op reads what the rounded ones before it give. The results lie on the very grid that a target finds for them:
    the outermost weights of a group stay outermost, so that its scale follows from them.

    Source: Cheng et al. 2023, arXiv:2309.05516, per op in place of per block, with Adam in place of signs of gradients,
    as in Nagel et al. 2020, arXiv:2004.10568, from which the clamps behind an op are in its loss. Descent: `descend`.
    """
    editor, simulator = WeightEditor(job.captured, changes), job.simulator(changes)
    sites = {
        site.op_id: site
        for site in editor.sites
        if job.plan.precision_of(site.op_id) in _INTEGERS and _reads_one_value(site)
    }
    if not sites:
        return NoChange("no product with a weight of its own is planned at integers")
    budget = _Budget(job.max_seconds, {op_id: editor.tensor(site.weight).numel() for op_id, site in sites.items()})

    def correct(step: Step) -> list[Tensor]:
        site = sites.get(step.op_id)
        if site is None:
            return step.run()
        job.reporter.advance(budget.share_done, f"learning the rounding of {step.op_id}")
        task = _Task(step, simulator.graph_module, site)
        learned = task.learn(budget.deadline(step.op_id), job.reporter.check)
        if learned is None:
            return step.run()
        editor.set(site.weight, task.stored(learned, editor), owner=step.op_id)
        return task.results(learned)

    job.lockstep(changes, simulator, correct)
    change = editor.change(ImproveMethod.LEARNED_ROUNDING, is_exact=False)
    return change if change.tensors else NoChange("no op came closer to its float results in the time that was given")


def _reads_one_value(site: Site) -> bool:
    """Whether all of its arguments but the data are stored: they are the same in every step."""
    others = [one for place, one in enumerate(site.node.args) if place != site.role.data]
    return all(one.op == "get_attr" for one in others if isinstance(one, fx.Node))


class _Budget:
    """Seconds for every op: half of what is left is shared evenly, half by the number of weights."""

    def __init__(self, seconds: float, sizes: dict[str, int]) -> None:
        self._end = clock() + seconds
        self._left = dict(sizes)
        self._all = sum(sizes.values())

    @property
    def share_done(self) -> float:
        """Part of the weights that are done."""
        return 1.0 - sum(self._left.values()) / self._all

    def deadline(self, op_id: str) -> float:
        """When the op must be done, on `clock`; call it once per op."""
        now = clock()
        share = (1.0 / len(self._left) + self._left[op_id] / sum(self._left.values())) / 2
        del self._left[op_id]
        return now + max(0.0, self._end - now) * share


class _Task:
    """The rounding of one op's weight."""

    def __init__(self, step: Step, graph_module: fx.GraphModule, site: Site) -> None:
        self._step, self._site = step, site
        self._target: Any = step.node.target
        weight = constant_of(graph_module, step.node.args[site.role.weight])
        assert weight is not None
        self._weight = weight.detach()
        precision, scheme = step.how
        axes = site.role.weight_axes(step.node, self._weight)
        self._groups = weight_groups(self._weight, axes, precision=precision, scheme=scheme)
        self._read = [tuple(_plain(one) for one in args) for args in step.read()]
        readers = list(step.node.users)
        clamp = readers[0] if len(readers) == 1 and str(readers[0].target) in CLAMPS else None
        is_fixed = clamp is not None and not any(isinstance(one, fx.Node) for one in clamp.args[1:])
        self._clamp = clamp if is_fixed else None
        self._batches = self._all_batches()
        every = -(-len(self._batches) // _LOOKS)
        self._looked_at = [_some(x, y, None) for x, y in self._batches[::every]]
        size = sum(float(x.square().mean()) for x, _ in self._batches) / len(self._batches)
        self._damping = _DAMPING * size

    def learn(self, deadline: float, check: Callable[[], None]) -> Tensor | None:
        """The rounded weight as the graph has it; None if there is no time, or none better than the nearest."""
        if self._batches[0][0].dim() != self._weight.dim() or clock() >= deadline:  # a convolution without a batch
            return None

        def is_over() -> bool:
            check()
            return clock() >= deadline

        settled = self._by_descent(is_over) if self._is_product() else None
        if settled is not None and self._clamp is None:
            return settled
        learned = self._by_gradients(deadline, check)
        return min((one for one in (settled, learned) if one is not None), key=self._error, default=None)

    def _is_product(self) -> bool:
        """Whether it is a matrix product that is not too wide, and whose inputs were not always 0."""
        x, _ = self._batches[0]
        return str(self._step.node.target) in LINEAR_OPS and x.shape[-1] <= WIDEST and bool(x.any())

    def _by_descent(self, is_over: Callable[[], bool]) -> Tensor:
        x, y = self._batches[0]
        bias = self._compute(self._reading(torch.zeros_like(x[:1])), self._weight)
        quadratic = Quadratic.of(x.float(), (y - bias).float(), near=self._turned(self._weight))
        grid = self._groups.grid(self._groups.rows)
        integers = grid.quantize(self._groups.rows)
        is_end = (integers == grid.low) | (integers == grid.high)
        scale, zero_point, label, is_fixed = (
            self._turned(self._groups.restore(one.float().reshape(len(integers), -1).expand_as(integers)))
            for one in (grid.scale, grid.zero_point, torch.arange(len(integers)), is_end)
        )
        changes = [0, *(label[0].diff().nonzero().flatten() + 1).tolist(), x.shape[-1]]
        edges = changes if len(label) == 1 or label[0, 0] != label[1, 0] else []
        found = descend(
            self._turned(self._nearest()),
            quadratic,
            IntegerGrid(scale, zero_point, is_fixed > 0, grid.low, grid.high, edges),
            is_over,
        )
        return self._turned(found).to(self._weight.dtype)

    def _turned(self, weight: Tensor) -> Tensor:
        """As [outputs, inputs], or back."""
        return (weight if self._site.role.channel_axis == 0 else weight.t()).contiguous().float()

    def _nearest(self) -> Tensor:
        return self._groups.restore(self._groups.grid(self._groups.rows).round_trip(self._groups.rows))

    def _by_gradients(self, deadline: float, check: Callable[[], None]) -> Tensor | None:
        rounding, generator = _Rounding(self._groups), torch.Generator().manual_seed(0)
        started = clock()
        self._move(rounding, generator, 1.0)
        each = max(clock() - started, 1e-9)
        steps = min(STEPS, int((deadline - started) / each))
        if steps < _FEWEST:
            return None
        best, least = None, self._error(self._nearest())
        for index in range(1, steps + 1):
            check()
            is_last = index == steps or clock() >= deadline
            if is_last or index % _BETWEEN_LOOKS == 0:
                found = self._groups.restore(rounding.on_own_grids())
                error = self._error(found)
                best, least = (found, error) if error < least else (best, least)
            if is_last:
                break
            self._move(rounding, generator, 1.0 - index / steps)
        return best

    def _move(self, rounding: _Rounding, generator: torch.Generator, pace: float) -> None:
        with torch.enable_grad():
            x, y = _some(*self._batches[int(torch.randint(len(self._batches), (1,), generator=generator))], generator)
            self._loss(self._groups.restore(rounding.rows()), x, y).backward()  # type: ignore[no-untyped-call]
        rounding.move(pace)

    def results(self, weight: Tensor) -> list[Tensor]:
        """What the op gives with this weight, per example."""
        return [self._compute(args, weight) for args in self._read]

    def stored(self, weight: Tensor, editor: WeightEditor) -> Tensor:
        """The weight as the capture stores it: without the batch norm that is folded into it in the graph.

        The norm's factor is that between the two weights; a channel that it makes 0 stays as it was.
        """
        if self._site.norm is None:
            return weight
        before = editor.tensor(self._site.weight)
        axis = [dim for dim in range(weight.dim()) if dim != self._site.role.channel_axis % weight.dim()]
        factor = self._weight.abs().amax(axis, keepdim=True) / before.abs().amax(axis, keepdim=True)
        sign = torch.sign((self._weight * before).sum(axis, keepdim=True))
        return torch.where(factor > 0, weight / (factor * sign), before)

    def _all_batches(self) -> list[tuple[Tensor, Tensor]]:
        """What the op reads and its float results; the inputs of a matrix product are put together as rows."""
        pairs = [(args[self._site.role.data], wide) for args, wide in zip(self._read, self._step.wide, strict=True)]
        if str(self._step.node.target) not in LINEAR_OPS:
            return [(_plain(x), _plain(y)) for x, y in pairs]
        x, y = (torch.cat([_plain(one[side]).reshape(-1, one[side].shape[-1]) for one in pairs]) for side in (0, 1))
        return [(x, y)]

    def _compute(self, args: Sequence[Any], weight: Tensor) -> Tensor:
        changed = list(args)
        changed[self._site.role.weight] = weight
        result: Tensor = self._target(*changed, **self._step.node.kwargs)
        return result

    def _clamped(self, value: Tensor) -> Tensor:
        if self._clamp is None:
            return value
        target: Any = self._clamp.target
        clamped: Tensor = target(value.clone(), *self._clamp.args[1:], **self._clamp.kwargs)
        return clamped

    def _loss(self, weight: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """Squared error per place, summed over the channels, and what is added for the weights themselves."""
        difference = self._clamped(self._compute(self._reading(x), weight)) - self._clamped(y)
        channels = self._weight.shape[self._site.role.channel_axis]
        return difference.square().mean() * channels + self._damping * (weight - self._weight).square().sum()

    def _reading(self, x: Tensor) -> list[Any]:
        """The op's arguments with other data."""
        args = list(self._read[0])
        args[self._site.role.data] = x
        return args

    def _error(self, weight: Tensor) -> float:
        return sum(float(self._loss(weight, x, y)) for x, y in self._looked_at)


class _Rounding:
    """What is learned of one weight: a shift of each value before it is rounded, and how much a grid covers."""

    def __init__(self, groups: WeightGroups) -> None:
        self._groups = groups
        rows = groups.rows
        self._low, self._high = rows.amin(1, keepdim=True).clamp(max=0.0), rows.amax(1, keepdim=True).clamp(min=0.0)
        if groups.is_affine:
            is_end = (rows == self._low) | (rows == self._high)
        else:
            self._high = torch.maximum(self._high, -self._low)
            is_end = rows.abs() == self._high
        self._inner = ~is_end
        self._shift = torch.zeros_like(rows, requires_grad=True)
        self._cover = torch.ones(2, len(rows), 1, device=rows.device, requires_grad=True)
        self._adam = torch.optim.Adam([{"params": [self._shift]}, {"params": [self._cover]}])

    def rows(self) -> Tensor:
        """The rounded values; gradients pass the rounding as if it was not there."""
        last = 2 ** (self._groups.bits - 1) - 1
        cover = self._cover
        zero: Tensor | float = 0.0
        if self._groups.is_affine:
            low, high = self._low * cover[0], self._high * cover[1]
            scale = ((high - low) / (2**self._groups.bits - 1)).clamp(min=SMALLEST_SCALE)
            zero = _rounded(-low / scale)
            bounds = (0, 2**self._groups.bits - 1)
        else:
            scale = (self._high * cover[0] / last).clamp(min=SMALLEST_SCALE)
            bounds = (-last, last)
        integers = (_rounded(self._groups.rows / scale + self._shift * self._inner) + zero).clamp(*bounds)
        values: Tensor = (integers - zero) * scale
        return values

    def on_own_grids(self) -> Tensor:
        """The rounded values; groups that have another grid of their own then are rounded to the nearest instead."""
        rows = self.rows().detach()
        again = self._groups.grid(rows).round_trip(rows)
        is_found = ((again - rows).abs() <= 1e-4 * rows.abs().amax(1, keepdim=True)).all(1, keepdim=True)
        return torch.where(is_found, rows, self._groups.grid(self._groups.rows).round_trip(self._groups.rows))

    def move(self, pace: float) -> None:
        """One step against the gradients; pace: 1 at first, 0 at the end."""
        for group, rate in zip(self._adam.param_groups, (_RATE, _COVER_RATE), strict=True):
            group["lr"] = rate * pace
        self._adam.step()
        self._adam.zero_grad()
        with torch.no_grad():
            self._shift.clamp_(-1.0, 1.0)
            self._cover.clamp_(_NARROWEST, 1.0)


def _rounded(value: Tensor) -> Tensor:
    rounded: Tensor = value + (torch.round(value) - value).detach()
    return rounded


def _plain(value: Any) -> Any:
    return value.detach() if isinstance(value, Tensor) else value


def _some(x: Tensor, y: Tensor, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
    """Some of what an op reads and gives: at random, or `_LOOKS` times as many rows at even distances."""
    is_product = x.dim() == 2
    count = _ROWS if is_product else max(1, _VALUES * len(y) // max(1, y.numel()))
    if generator is None and is_product:
        every = max(1, len(x) // (_LOOKS * count))
        return x[::every], y[::every]
    if x.dim() != y.dim() or len(x) != len(y) or len(x) <= count:
        return x, y
    chosen = torch.arange(count) if generator is None else torch.randint(len(x), (count,), generator=generator)
    return x[chosen], y[chosen]
