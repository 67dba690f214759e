"""Calibration examples for a model without data, made from what its batch norms saw in training.

A batch norm keeps the mean and the variance that each channel of its input had in training. Inputs that give every
norm these again have activations in the ranges of real data, which random inputs rarely have. They are found by
gradient descent on the inputs, as in ZeroQ (Cai et al. 2020, arXiv 2001.00281).
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from ace_studio.engine.flow import Example
from ace_studio.engine.flow.module_state import state_put_back

STEPS = 30
LEARNING_RATE = 0.1
BEGINNINGS = [(scale, shift) for scale in (1.0, 4.0, 16.0, 64.0) for shift in (0.0, 2.0)]
"""Before the descent, random inputs ``x`` are tried as ``scale * (x + shift)``: pixels may go from 0 to 255."""
WANTED_ROWS = 16
MOST_EXAMPLES = 8
"""Their graphs are in memory at the same time, for the gradients."""
MOST_SECONDS = 20.0
"""All ends then, wherever it is; a large model gets fewer examples, so that `LEAST_STEPS` fit in."""
LEAST_STEPS = 5
TELL_EVERY_S = 0.2
START_NOISE = 0.1
ALIKE = 0.25
"""Mean squared deviation, in standard deviations of training, from which random inputs are real enough as they are."""
NEEDED_GAIN = 4.0
"""The deviation has to fall to this part, or the inputs are left as they were."""
_SEED = 0


def examples_from_norms(
    module: nn.Module, starts: Sequence[Example], advance: Callable[[float, str], None] = lambda *_: None
) -> list[Example]:
    """Up to `MOST_EXAMPLES` examples of the shapes of ``starts`` that give the batch norms the inputs of training.

    Args:
        module: In eval mode; it is not changed.
        starts: Random examples. Floating-point tensors in them are where the search begins, the rest stays.
        advance: Gets the share of `MOST_SECONDS` that has gone by, and words.

    Returns: The examples; none where the module has no norms with statistics, cannot be differentiated, already sees
        what it saw in training, or does not come closer to it.
    Raises: What ``advance`` raises, to cancel.
    """
    norms = [one for one in module.modules() if isinstance(one, _BatchNorm) and one.running_var is not None]
    if not norms or not starts:
        return []
    pace = _Pace(advance)
    try:
        with state_put_back(module):
            _descend(module, norms, starts, pace)
    except _Ended as ended:
        if ended.__cause__ is not None:
            raise ended.__cause__ from None
    return pace.best


class _Ended(BaseException):
    """The time is over, or a stop was asked for: no ``except Exception`` of the model's code may hold it up."""


class _Pace:
    """Looks at the clock whenever a norm is called, forward and backward, tells what is done, and keeps the best."""

    def __init__(self, advance: Callable[[float, str], None]) -> None:
        self._advance = advance
        self._began = self._told = time.monotonic()
        self.words = ""
        self.best: list[Example] = []

    def beat(self, *_: object, words: str = "") -> None:
        """Raises: _Ended, from what ``advance`` raised."""
        now = time.monotonic()
        self.words = words or self.words
        if now - self._began > MOST_SECONDS:
            raise _Ended
        if words or now - self._told > TELL_EVERY_S:
            self._told = now
            try:
                self._advance((now - self._began) / MOST_SECONDS, self.words)
            except BaseException as error:
                raise _Ended from error


def _descend(module: nn.Module, norms: Sequence[_BatchNorm], starts: Sequence[Example], pace: _Pace) -> None:
    """Improve the best of the beginnings by gradients; ``pace.best`` stays empty if that is not needed, or no help."""
    deviations, most, seconds = {}, MOST_EXAMPLES, list[float]()
    for scale, shift in BEGINNINGS:
        pace.beat(words=f"making examples from batch norms, {scale:g} (x + {shift:g})")
        started, examples = time.monotonic(), _noisy(starts, scale, shift, most=most)
        deviations[scale, shift] = _deviation_in_numbers(module, norms, examples, pace)
        if deviations[BEGINNINGS[0]] < ALIKE:
            return
        seconds.append((time.monotonic() - started) / len(examples))
        if len(seconds) > 1:  # the first pass warms up; going back takes twice the time
            passes = len(BEGINNINGS) + 3 * LEAST_STEPS
            most = max(1, min(most, int(MOST_SECONDS / passes / min(seconds))))
    scale, shift = min(BEGINNINGS, key=lambda one: deviations[one])
    examples = _noisy(starts, scale, shift, most=most)
    leaves = [leaf for one in examples for leaf in one.tensors() if leaf.is_floating_point()]
    if not leaves:
        return
    optimizer = torch.optim.Adam(leaves, lr=LEARNING_RATE * scale)
    least = deviations[BEGINNINGS[0]] / NEEDED_GAIN
    for step in range(STEPS + 1):
        pace.beat(words=f"making examples from batch norms, step {min(step + 1, STEPS)} of {STEPS}")
        try:
            with torch.enable_grad():
                deviation = _deviation(module, norms, examples, pace)
                if float(deviation.detach()) < least:
                    least = float(deviation.detach())
                    pace.best = [one.map_tensors(lambda leaf: leaf.detach().clone()) for one in examples]
                gradients = torch.autograd.grad(deviation, leaves, allow_unused=True)
        except Exception:  # noqa: BLE001 - the model's own code may refuse gradients in any way
            pace.best = []
            return
        for leaf, gradient in zip(leaves, gradients, strict=True):
            leaf.grad = gradient
        optimizer.step()


def _noisy(starts: Sequence[Example], scale: float, shift: float, *, most: int) -> list[Example]:
    """Copies of the examples in turn, their numbers shuffled, disturbed and moved, so that no two are alike."""
    generator = torch.Generator().manual_seed(_SEED)

    def disturbed(leaf: Tensor) -> Tensor:
        if not leaf.is_floating_point():
            return leaf.detach().clone()
        order = torch.randperm(leaf.numel(), generator=generator).to(leaf.device)
        noise = torch.randn(leaf.shape, generator=generator).to(leaf)
        shuffled = leaf.detach().flatten()[order].reshape(leaf.shape)
        return (scale * (shuffled + START_NOISE * noise + shift)).requires_grad_()

    found: list[Example] = []
    rows = 0
    while rows < WANTED_ROWS and len(found) < most:
        start = starts[len(found) % len(starts)]
        found.append(start.map_tensors(disturbed))
        rows += max((shape[0] for shape in start.shapes() if shape), default=1)
    return found


def _deviation(module: nn.Module, norms: Sequence[_BatchNorm], examples: Sequence[Example], pace: _Pace) -> Tensor:
    """How far means and standard deviations of the norms' inputs over all examples lie from those of training.

    In units of the standard deviation of training, squared; the mean over the channels of a norm, and over the norms.
    """
    with _moments(norms, pace) as moments:
        for one in examples:  # forward() may write into its inputs, so it gets copies that gradients pass through
            one.map_tensors(torch.Tensor.clone).call(module)
    total = torch.zeros(())
    for norm, seen in moments.items():
        assert norm.running_mean is not None
        assert norm.running_var is not None
        count = sum(each.count for each in seen)
        mean = torch.stack([each.sums for each in seen]).sum(0) / count
        variance = (torch.stack([each.squares for each in seen]).sum(0) / count - mean**2).clamp_min(0)
        spread = (norm.running_var + norm.eps).sqrt()
        shift = ((mean - norm.running_mean) / spread) ** 2
        scale = ((variance + norm.eps).sqrt() / spread - 1) ** 2
        total = total.to(shift) + (shift + scale).mean()
    return total / max(len(moments), 1)


def _deviation_in_numbers(
    module: nn.Module, norms: Sequence[_BatchNorm], examples: Sequence[Example], pace: _Pace
) -> float:
    """The deviation; infinite where it is no number, or where the model refuses inputs of this size."""
    try:
        with torch.no_grad():
            found = float(_deviation(module, norms, examples, pace))
    except Exception:  # noqa: BLE001 - the model's own code may refuse inputs in any way
        return math.inf
    return found if math.isfinite(found) else math.inf


class _Seen:
    """Sums over all values of each channel of one input of a norm: tensors [channels]."""

    def __init__(self, value: Tensor) -> None:
        others = [axis for axis in range(value.ndim) if axis != 1]
        self.sums, self.squares = value.sum(others), (value**2).sum(others)
        self.count = value.numel() / value.shape[1]


@contextmanager
def _moments(norms: Sequence[_BatchNorm], pace: _Pace) -> Iterator[dict[_BatchNorm, list[_Seen]]]:
    """What each norm is called with, inside the block."""
    found: dict[_BatchNorm, list[_Seen]] = {}

    def see(norm: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        assert isinstance(norm, _BatchNorm)
        pace.beat()
        if inputs[0].requires_grad:
            inputs[0].register_hook(pace.beat)  # type: ignore[no-untyped-call]
        found.setdefault(norm, []).append(_Seen(inputs[0]))

    hooks = [norm.register_forward_pre_hook(see) for norm in norms]
    try:
        yield found
    finally:
        for hook in hooks:
            hook.remove()
