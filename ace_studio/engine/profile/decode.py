"""Decoding with a model of one step: greedily, token by token, with the cache fed back."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ace_studio.engine.examples.leaves import positions_below, tensor_paths
from ace_studio.engine.flow import Example, tensor_leaves
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.recipe import DecodeChoice
from ace_studio.records.results import DecodeReport

_WHERE = "[measure] decode"
REPETITIONS = 5


@dataclass(frozen=True)
class StepModel:
    """How one step leads to the next, by positions among the flat tensors of the inputs and of the outputs."""

    start: Example
    """The call that decoding begins with: the last token of a context, and the context's cache."""
    token: int
    logits: int
    feed: tuple[tuple[int, int], ...]
    """(input, output that it gets)."""
    position: int | None = None
    mask: int | None = None

    @classmethod
    def of(cls, choice: DecodeChoice, start: Example, input_names: Sequence[str], outputs: object) -> StepModel:
        """Find the inputs and outputs that the recipe names.

        Args:
            choice: The recipe's ``[measure.decode]``.
            start: A call of the model.
            input_names: Name of each of ``start.tensors()``.
            outputs: What the model gave for ``start``.

        Raises: AceError(RECIPE) if a name is not there, or inputs and outputs do not fit each other.
        """
        paths = [path for path, _ in tensor_paths(outputs)]
        feed: list[tuple[int, int]] = []
        for name, path in choice.feed.items():
            inputs, given = _found(name, input_names, "input"), _found(path, paths, "output")
            if len(inputs) != len(given):
                raise _misfit(f"'{name}' is {len(inputs)} tensors, but '{path}' is {len(given)}")
            feed += zip(inputs, given, strict=True)
        made = cls(
            start=start,
            token=_found(choice.token, input_names, "input")[0],
            logits=_found(choice.logits, paths, "output")[0],
            feed=tuple(feed),
            position=_found(choice.position, input_names, "input")[0] if choice.position else None,
            mask=_found(choice.mask, input_names, "input")[0] if choice.mask else None,
        )
        made.check(outputs)
        return made

    def check(self, outputs: object) -> None:
        """Raises: AceError(RECIPE) if an output cannot be what the input is in the next step."""
        flat, inputs = tensor_leaves(outputs), self.start.tensors()
        if inputs[self.token].numel() != inputs[self.token].shape[0]:
            raise _misfit(f"the token has the shape {tuple(inputs[self.token].shape)}; a step takes one per sequence")
        if not flat[self.logits].is_floating_point():
            raise _misfit(f"the scores of the next token are {flat[self.logits].dtype}")
        for to, source in self.feed:
            wanted, given = inputs[to], flat[source]
            if wanted.dtype != given.dtype or wanted.ndim != given.ndim:
                raise _misfit(
                    f"an output of {given.dtype} {tuple(given.shape)} is fed to an input of "
                    f"{wanted.dtype} {tuple(wanted.shape)}"
                )

    def next_call(self, inputs: Sequence[Tensor], flat: Sequence[Tensor], token: Tensor) -> list[Tensor]:
        """The flat inputs of the next step. Shapes: token [batch]."""
        following = list(inputs)
        following[self.token] = token.to(inputs[self.token].dtype).reshape(inputs[self.token].shape)
        for to, source in self.feed:
            following[to] = flat[source]
        if self.position is not None:
            following[self.position] = inputs[self.position] + 1
        if self.mask is not None:
            mask = inputs[self.mask]
            following[self.mask] = torch.cat([mask, torch.ones_like(mask[..., :1])], dim=-1)
        return following

    def scores(self, flat: Sequence[Tensor]) -> Tensor:
        """Scores of the next token, [batch, vocabulary]."""
        logits = flat[self.logits]
        batch = self.start.tensors()[self.token].shape[0]
        return logits.reshape(batch, -1, logits.shape[-1])[:, -1]

    def call(self, function: Callable[..., Any], inputs: Sequence[Tensor]) -> list[Tensor]:
        """One step on flat inputs; flat outputs."""
        given = iter(inputs)
        return tensor_leaves(self.start.map_tensors(lambda _: next(given)).call(function))


def decode(
    function: Callable[..., Any], step: StepModel, *, tokens: int, check: Callable[[], None] = lambda: None
) -> tuple[list[int], float]:
    """Decode greedily from the start; the tokens of the first sequence, and the seconds that it took.

    Args:
        function: Takes what forward takes.
        step: How one step leads to the next.
        tokens: How many steps.
        check: Called before every step; may raise to cancel.
    """
    inputs = [tensor.clone() for tensor in step.start.tensors()]
    chosen: list[int] = []
    with torch.no_grad():
        started = time.perf_counter()
        for _ in range(tokens):
            check()
            flat = step.call(function, inputs)
            best = step.scores(flat).argmax(-1)
            chosen.append(int(best[0]))
            inputs = step.next_call(inputs, flat, best)
        seconds = time.perf_counter() - started
    return chosen, seconds


def read_text(function: Callable[..., Any], step: StepModel, tokens: Tensor) -> Tensor:
    """Scores after every token of a text, fed one by one behind the start's cache.

    Shapes: tokens [batch, length] -> [batch, length, vocabulary]. Raises: AceError(RECIPE) for another batch.
    """
    inputs = [tensor.clone() for tensor in step.start.tensors()]
    batch = inputs[step.token].shape[0]
    if tokens.ndim != 2 or tokens.shape[0] != batch:
        raise _misfit(f"a text of shape {tuple(tokens.shape)} for a step of {batch} sequence(s)")
    scores = []
    inputs[step.token] = tokens[:, 0].to(inputs[step.token].dtype).reshape(inputs[step.token].shape)
    for at in range(tokens.shape[1]):
        flat = step.call(function, inputs)
        scores.append(step.scores(flat).clone())
        if at + 1 < tokens.shape[1]:
            inputs = step.next_call(inputs, flat, tokens[:, at + 1])
    return torch.stack(scores, dim=1)


def decode_report(
    chosen: Sequence[int], reference: Sequence[int], seconds: Sequence[float], batch: int
) -> DecodeReport:
    """Rates over some repetitions of decoding; ``reference`` are the float model's tokens."""
    rates = [batch * len(chosen) / one for one in seconds]
    same = next(
        (at for at, (one, other) in enumerate(zip(chosen, reference, strict=True)) if one != other), len(chosen)
    )
    return DecodeReport(
        tokens=len(chosen),
        tokens_per_s=round(statistics.median(rates), 3),
        tokens_per_s_low=round(min(rates), 3),
        tokens_per_s_high=round(max(rates), 3),
        same_tokens=same / len(chosen),
    )


def _found(path: str, known: Sequence[str], what: str) -> list[int]:
    found = positions_below(known, path)
    if not found:
        raise AceError.of(
            ErrorCode.RECIPE,
            f"The model has no {what} '{path}'",
            why=f"its {what}s are {', '.join(known[:12])}" + (" ..." if len(known) > 12 else ""),
            remedy="Name one of them, or what several of them begin with.",
            where=_WHERE,
        )
    return found


def _misfit(why: str) -> AceError:
    return AceError.of(
        ErrorCode.RECIPE,
        "The outputs of one step cannot be the inputs of the next",
        why=why,
        remedy="Check token, logits and feed; feed names an input and the output that it gets: cache = '1'.",
        where=_WHERE,
    )
