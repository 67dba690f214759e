"""The training loop: seeded, cancellable, limited in time. It keeps the state with the best held-out score."""

from __future__ import annotations

import copy
import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from ace_studio.engine.finetune.rounding import ROUNDED, Rounding
from ace_studio.engine.flow import Example, pooled_outputs, tensor_leaves
from ace_studio.engine.metrics.loss import differentiable_loss, scalar_loss
from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.fidelity import measured_sqnr_db
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.messages import Phase
from ace_studio.records.recipes.recipe import FinetuneChoice, FinetuneMethod
from ace_studio.records.results.finetuning import HELD_OUT_SQNR, FinetuneEpoch, FinetuneReport

CALIBRATION_BATCHES = 32
"""At most so many batches are run to find the ranges of inputs."""
LAST_RATE = 0.1
"""The learning rate falls linearly to this fraction of its start."""


@dataclass(frozen=True)
class FinetuneJob:
    """What to train, and on which data."""

    module: nn.Module
    """In eval mode, perhaps pruned; it stays as it is."""
    teacher: nn.Module
    """The model as it was given."""
    choice: FinetuneChoice
    batches: Sequence[Batch]
    """On the module's device."""
    reporter: Reporter
    loss: Loss | None = None
    masks: Mapping[str, Tensor] = field(default_factory=dict)
    """Name of a parameter -> what of it was not pruned; the rest stays zero."""
    metric: Callable[[Callable[..., Any]], float] | None = None
    higher_is_better: bool = True
    stays_high: Callable[[str, nn.Module], bool] = lambda _path, _layer: False
    """Whether the plan keeps a layer at a float precision, so that ``qat`` does not round it."""
    per_channel: bool = True
    """Whether weights are rounded with a scale per channel (``qat``)."""


@dataclass(frozen=True)
class FineTuned:
    """A trained copy, or an untrained one if training did not improve the score."""

    module: nn.Module
    report: FinetuneReport


def finetune_module(job: FinetuneJob) -> FineTuned:
    """Train a copy of the module; its score is never worse than before training.

    Raises: AceError(NO_DATA) if there are too few batches; AceError(USER_CODE) for a loss that cannot be trained by;
        AceError(UNSUPPORTED) for ``qat`` without a layer to round, or a module without weights; Cancelled.
    """
    job.reporter.phase(Phase.FINETUNE, str(job.choice.method))
    return _Training(job).run()


_DIVERGED = "{what} was not finite in epoch {epoch}; a lower learning_rate may help"


class _Training:
    """One run of the loop."""

    def __init__(self, job: FinetuneJob) -> None:
        self._job = job
        self._started = time.monotonic()
        self._module = copy.deepcopy(job.module)
        self._train, self._held_out = _split(job)
        self._scorer = _scorer_of(job, self._held_out)
        self._rounding = self._make_rounding()
        self._weights = _trainable(self._module)
        self._masks = [(dict(self._module.named_parameters())[name], mask) for name, mask in job.masks.items()]
        self._history: list[FinetuneEpoch] = []
        self._stopped = ""

    def run(self) -> FineTuned:
        job, choice = self._job, self._job.choice
        before = self._score(epoch=0, loss=None)
        best, best_epoch, best_state = before, 0, None
        optimizer = torch.optim.Adam(self._weights, lr=choice.learning_rate)
        total = choice.epochs * len(self._train)
        schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, LAST_RATE, total_iters=max(1, total))
        order = random.Random(choice.seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(choice.seed)
            for epoch in range(1, choice.epochs + 1):
                loss = self._run_epoch(epoch, optimizer, schedule, order)
                if not all(bool(one.isfinite().all()) for one in self._weights):  # no grid can be built from them
                    self._stopped = self._stopped or _DIVERGED.format(what="a weight", epoch=epoch)
                    known = loss if math.isfinite(loss) else None
                    self._history.append(FinetuneEpoch(epoch=epoch, loss=known, score=None, seconds=0.0))
                    break
                score = self._score(epoch=epoch, loss=loss)
                if self._scorer.is_better(score, best):
                    best, best_epoch, best_state = score, epoch, _copied_state(self._module)
                if self._stopped:
                    break
        if best_state is not None:
            self._module.load_state_dict(best_state)
        module = self._module if best_state is not None else copy.deepcopy(job.module)
        for one, other in zip(module.parameters(), job.module.parameters(), strict=True):
            one.requires_grad_(other.requires_grad)
            one.grad = None
        return FineTuned(module, self._report(before, best, best_epoch))

    def _run_epoch(self, epoch: int, optimizer: Any, schedule: Any, order: random.Random) -> float:
        """One pass over the batches; the mean loss, which is not finite if training broke down."""
        choice, batches = self._job.choice, list(self._train)
        order.shuffle(batches)
        self._calibrate()
        total = 0.0
        for index, batch in enumerate(batches):
            done = (epoch - 1 + index / len(batches)) / choice.epochs
            shown = f", loss {total / index:.4g}" if index else ""
            self._job.reporter.advance(done, f"epoch {epoch} of {choice.epochs}{shown}")
            total += self._step(batch, optimizer)
            schedule.step()
            if not math.isfinite(total):
                self._stopped = _DIVERGED.format(what="the loss", epoch=epoch)
                return total
            if time.monotonic() - self._started > choice.max_seconds:
                self._stopped = f"max_seconds ({choice.max_seconds:g}) were over in epoch {epoch}"
                return total / (index + 1)
        return total / len(batches)

    def _step(self, batch: Batch, optimizer: Any) -> float:
        example, label = batch
        wanted = None if self._job.loss is not None else teacher_outputs(self._job.teacher, example)
        optimizer.zero_grad(set_to_none=True)
        with torch.enable_grad(), self._rounded():
            outputs = example.copied().call(self._module)
            value = relative_error(outputs, wanted) if self._job.loss is None else self._job.loss(outputs, label)
            differentiable_loss(value).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        with torch.no_grad():
            for parameter, mask in self._masks:
                parameter.mul_(mask)
        return float(value.detach())

    def _score(self, *, epoch: int, loss: float | None) -> float:
        started = time.monotonic()
        self._calibrate()
        with self._rounded():
            score = self._scorer.score(self._module)
        row = FinetuneEpoch(epoch=epoch, loss=loss, score=score, seconds=round(time.monotonic() - started, 3))
        self._history.append(row)
        return score

    # --- rounding ---

    def _make_rounding(self) -> Rounding | None:
        job = self._job
        if job.choice.method is not FinetuneMethod.QAT:
            return None
        layers = {
            path: layer
            for path, layer in self._module.named_modules()
            if isinstance(layer, ROUNDED) and not job.stays_high(path, layer)
        }
        if not layers:
            raise AceError.of(
                ErrorCode.UNSUPPORTED,
                "There is no layer to train with rounding",
                why="the model has no convolution and no linear layer that the plan has at int8",
                remedy='Take method = "distill", or plan some layers at int8-static.',
                where="[finetune] method",
            )
        return Rounding(self._module, layers, per_channel=job.per_channel)

    def _calibrate(self) -> None:
        if self._rounding is not None:
            self._rounding.calibrate([example for example, _ in self._train[:CALIBRATION_BATCHES]])

    def _rounded(self) -> AbstractContextManager[None]:
        return nullcontext() if self._rounding is None else self._rounding.applied()

    # --- the report ---

    def _report(self, before: float, best: float, best_epoch: int) -> FinetuneReport:
        name, kept = self._scorer.name, best_epoch > 0
        reason = (
            f"{name} went from {before:.4g} to {best:.4g} in epoch {best_epoch}"
            if kept
            else f"no epoch was better than the {name} of {before:.4g} before training"
        )
        return FinetuneReport(
            method=str(self._job.choice.method),
            score_name=name,
            higher_is_better=self._scorer.higher_is_better,
            before=before,
            after=best,
            kept=kept,
            reason=reason,
            best_epoch=best_epoch,
            history=tuple(self._history),
            examples=len(self._train),
            held_out=len(self._held_out),
            layers=len(self._rounding.layers) if self._rounding is not None else 0,
            stopped=self._stopped,
            seconds=round(time.monotonic() - self._started, 3),
        )


def _split(job: FinetuneJob) -> tuple[list[Batch], list[Batch]]:
    """Batches to train on and batches to judge by; with a metric of the user's all are trained on."""
    if job.metric is not None and job.batches:
        return list(job.batches), []
    if len(job.batches) < 2:
        raise AceError.of(
            ErrorCode.NO_DATA,
            f"Fine-tuning has {len(job.batches)} batch{'es' if not job.batches else ''} of data",
            why="one is needed to train on and another one to judge by",
            remedy="Let [finetune] data give more batches; some hundred examples are usual.",
            where="[finetune] data",
        )
    order = list(job.batches)
    random.Random(job.choice.seed).shuffle(order)
    count = min(len(order) - 1, max(1, round(job.choice.held_out * len(order))))
    return order[count:], order[:count]


def _scorer_of(job: FinetuneJob, held_out: Sequence[Batch]) -> Scorer:
    if job.metric is not None:
        return Scorer("metric", job.higher_is_better, job.metric)
    if job.loss is not None:
        return loss_scorer(held_out, job.loss)
    return fidelity_scorer(held_out, job.teacher)


def _trainable(module: nn.Module) -> list[nn.Parameter]:
    weights = [one for one in module.parameters() if one.is_floating_point()]
    for one in weights:
        one.requires_grad_(True)
    if not weights:
        raise AceError.of(
            ErrorCode.UNSUPPORTED,
            "The model has no weights to train",
            why="none of its parameters is a floating-point tensor",
            remedy="Leave [finetune] out.",
            where="[finetune] method",
        )
    return weights


def _copied_state(module: nn.Module) -> dict[str, Any]:
    return {name: value.clone() if isinstance(value, Tensor) else value for name, value in module.state_dict().items()}


Batch = tuple[Example, Any]
"""Inputs and label; the label is None where there is none."""
Loss = Callable[[Any, Any], Tensor]


@dataclass(frozen=True)
class Scorer:
    """Gives a model its score."""

    name: str
    higher_is_better: bool
    score: Callable[[nn.Module], float]

    def is_better(self, one: float, other: float) -> bool:
        """Whether ``one`` beats ``other``; NaN beats nothing."""
        return one > other if self.higher_is_better else one < other


def fidelity_scorer(batches: Sequence[Batch], teacher: nn.Module) -> Scorer:
    """By SQNR against the teacher over held-out batches, the worst output's, dB."""
    references = [tensor_leaves(teacher_outputs(teacher, example)) for example, _ in batches]

    def score(module: nn.Module) -> float:
        given = [tensor_leaves(teacher_outputs(module, example)) for example, _ in batches]
        return measured_sqnr_db(pooled_outputs(references), pooled_outputs(given))

    return Scorer(HELD_OUT_SQNR, True, score)


def loss_scorer(batches: Sequence[Batch], loss: Loss) -> Scorer:
    """By the user's loss over held-out batches."""

    def score(module: nn.Module) -> float:
        values = [loss(teacher_outputs(module, example), label) for example, label in batches]
        return sum(float(scalar_loss(value)) for value in values) / len(values)

    return Scorer("held-out loss", False, score)


def teacher_outputs(module: nn.Module, example: Example) -> Any:
    """Outputs of the module, without gradients."""
    with torch.no_grad():
        return example.copied().call(module)


def relative_error(outputs: object, wanted: object) -> Tensor:
    """Energy of the error over the energy of what is wanted, summed over the floating-point outputs.

    What training lowers is what SQNR counts: ``-10 log10`` of it is the SQNR of a single output, dB.
    """
    total = torch.zeros(())
    for one, other in zip(tensor_leaves(outputs), tensor_leaves(wanted), strict=True):
        if one.is_floating_point():
            scale = other.float().square().sum().clamp(min=1e-12)
            total = total.to(one.device) + (one.float() - other.float()).square().sum() / scale
    return total
