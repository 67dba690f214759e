"""Runs the user's module eagerly, from a state that is put back afterwards, and explains what forward raises."""

from __future__ import annotations

import random
import re
import sys
import tomllib
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from ace_studio.engine.capture.places import find_place
from ace_studio.engine.examples.containers import register_containers
from ace_studio.engine.examples.leaves import describe, forward_parameters
from ace_studio.engine.flow import Example, put_in_eval_mode, tensor_leaves
from ace_studio.engine.flow.example import repeats_without_end
from ace_studio.engine.flow.module_state import ModuleState
from ace_studio.engine.flow.plain_tensors import ALL_KINDS, check_plain
from ace_studio.engine.user_files import is_user_file
from ace_studio.records.errors import AceError, ErrorCode, is_out_of_memory, message_of

FORWARD_SEED = 20240607
_BAD_INPUT = re.compile(
    r"shapes cannot be multiplied|must match the size|expected .* channels|size mismatch|is invalid for input of size|"
    r"mismatch in (shape|size)|sizes of tensors must match|expected input|should be the same|expected (object of )?"
    r"(scalar )?type|expected .* but (got|found)|out of range|dimension out of|index out of|cannot be broadcast|"
    r"kernel size can't be greater|output size is too small|missing \d+ required|unexpected keyword|"
    r"positional argument|same dtype|must be Tensor, not|given normalized_shape|"
    r"not implemented for '(Int|Long|Half|Bool|Byte)|^Guard failed: ",
    re.IGNORECASE,
)

_TOO_MANY = re.compile(r"takes .*positional arguments? but \d+ were given")


@dataclass(frozen=True)
class TypoHint:
    """A common mistake in Python code: the pattern of its message, the cause, and the remedy."""

    pattern: str
    why: str
    remedy: str


_TYPOS = tuple(
    TypoHint(**row) for row in tomllib.loads(Path(__file__).with_name("typos.toml").read_text(encoding="utf-8"))["typo"]
)


def set_seed(seed: int = FORWARD_SEED) -> None:
    """One seed for torch, Python and numpy, since forward may draw from any."""
    # For each kind of device that is not in use torch.manual_seed writes the whole stack down, for an error message.
    (torch.manual_seed if torch.accelerator.is_available() else torch.default_generator.manual_seed)(seed)
    random.seed(seed)
    np.random.seed(seed)  # the user's code draws from the global generator


def call_in_turn(function: Callable[..., Any], examples: Sequence[Example]) -> list[Any]:
    """Copies of the results of consecutive calls; the seed is set once, before the first call."""
    return _call_own([example.copied() for example in examples], function, seed=FORWARD_SEED)


def _call_own(examples: Sequence[Example], function: Callable[..., Any], *, seed: int) -> list[Any]:
    before = random.getstate(), np.random.get_state()
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=_cuda_devices()):
            set_seed(seed)
            return [_detached(example.call(function)) for example in examples]
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])


def _cuda_devices() -> list[int]:
    return list(range(torch.cuda.device_count())) if torch.cuda.is_available() else []


def _detached(value: Any) -> Any:
    _check_ends("forward() returns", value)
    return pytree.tree_map_only(Tensor, lambda tensor: tensor.detach().clone(), value)


def _check_ends(what: str, value: object) -> None:
    """Raises: AceError(USER_CODE) for a value that torch would walk for ever."""
    if repeats_without_end(value, most=sys.float_info.max):
        raise AceError.of(
            ErrorCode.USER_CODE,
            f"{what} lists or tables that repeat their members without end",
            why="a list that holds one list twice, sixty times over, has more leaves than any memory",
            remedy="Hold every member once.",
        )


@dataclass
class EagerRun:
    """A module that is always called from the same state."""

    module: nn.Module
    state: ModuleState
    writes_into: tuple[int, ...] = ()
    """Positions of the input tensors that forward changed in the last call of `output`."""
    changed: set[str] = field(default_factory=set)
    """Names of the buffers that calls of `output` changed."""
    counted: tuple[str, ...] = ()
    """Plain numbers and lists that consecutive calls changed, in the last run of `outputs`."""

    @classmethod
    def of(cls, module: nn.Module) -> EagerRun:
        """Put the module into eval mode and remember its state."""
        put_in_eval_mode(module)
        for path, child in module.named_modules():
            for name, value in vars(child).items():
                _check_ends(f"{f'{path}.{name}'.lstrip('.')} holds", value)
        return cls(module, ModuleState(module))

    def output(self, example: Example, *, seed: int = FORWARD_SEED) -> Any:
        """Result of one call from the remembered state, which is restored afterwards."""
        own = example.copied()
        try:
            result = _call_own([own], self.module, seed=seed)[0]
            self.changed.update(self.state.buffer_changes())
        finally:
            self.state.restore()
        pairs = zip(example.tensors(), own.tensors(), strict=True)
        self.writes_into = tuple(at for at, (old, new) in enumerate(pairs) if not _same_numbers(old, new))
        return result

    def output_if_accepted(self, example: Example) -> Any | None:
        """Result of one call at sizes that no example has; None if forward raises on them."""
        try:
            return self.output(example)
        except Exception:  # noqa: BLE001 - the user's model may refuse made-up sizes in any way
            return None

    def outputs(self, examples: Sequence[Example], *, function: Callable[..., Any] | None = None) -> list[Any]:
        """Results of consecutive calls, the first from the remembered state, which is restored afterwards.

        ``function`` is called in place of the module, whose state it changes.
        """
        try:
            results = call_in_turn(function or self.module, examples)
            self.counted = tuple(self.state.changes(of=(int, float, list, deque)))
            return results
        finally:
            self.state.restore()

    def first_values(self) -> dict[str, Tensor]:
        """Copies of the buffers that calls changed, in the remembered state."""
        return {name: one.detach().clone() for name, one in self.module.named_buffers() if name in self.changed}

    def changed_by(self, example: Example) -> tuple[list[str], list[str]]:
        """Names of the plain attributes and of the buffers that a call changes."""
        try:
            call_in_turn(self.module, [example])
            return self.state.changes(), self.state.buffer_changes()
        finally:
            self.state.restore()


def _same_numbers(one: Tensor, other: Tensor) -> bool:
    return torch.equal(one, other) or torch.equal(one.nan_to_num(), other.nan_to_num())


def run_example(eager: EagerRun, example: Example, *, label: str) -> Any:
    """The eager result for a user's example (``label`` is ``example 2``).

    Raises: AceError(BAD_INPUT) if the example does not fit the model, AceError(USER_CODE) if forward raises, each
        with the user's line.
    """
    try:
        result = eager.output(example)
        if register_containers(result):
            result = eager.output(example)
    except AceError:
        raise
    except Exception as error:  # the user's forward raises anything
        raise forward_error(error, eager.module, example, label=label) from error
    if not tensor_leaves(result):
        raise AceError.of(
            ErrorCode.USER_CODE,
            f"forward() of {type(eager.module).__name__} returns no tensor",
            why=f"it returned {type(result).__name__}; a graph needs at least one tensor as its result",
            remedy="Return the tensors that the model computes, in a tuple, list or dictionary if there are several.",
        )
    outputs = [(f"output {at}", leaf) for at, leaf in enumerate(tensor_leaves(result))]
    owner = f"forward() of {type(eager.module).__name__} returns"
    check_plain(outputs, owner, code=ErrorCode.USER_CODE, kinds=ALL_KINDS)
    return result


def _remedy(message: str, module: nn.Module) -> str:
    """What to do about an input that forward does not take."""
    if _TOO_MANY.search(message):
        return "Give the inputs alone: a loader of (input, label) pairs gives labels too."
    types = {str(one.dtype)[6:] for one in (*module.parameters(), *module.buffers()) if one.dim() > 1} - {"float32"}
    if types and ("dtype" in message or "scalar type" in message):
        return (
            f"Weights of the model are {' and '.join(sorted(types))}: call .float() on it, or give inputs of that type."
        )
    entries = sorted({one.num_embeddings for one in module.modules() if isinstance(one, nn.Embedding)})
    if "index out of range" in message and entries:
        listed = " and ".join(f"{count:,}" for count in entries[:3])
        return (
            f"Its embeddings have {listed} rows: keep integers below, with values such as 'random 0..{entries[0] - 1}'."
        )
    return "Correct the shape or type of that input, or the layer on that line: one does not fit the other."


def forward_error(error: Exception, module: nn.Module, example: Example, *, label: str) -> AceError:
    """The error to show when forward raised on an example."""
    place = find_place(traceback.extract_tb(error.__traceback__), module)
    owner = f"forward() of {place.class_name}"
    message = message_of(error, limit=300)
    source = f"; the line reads `{place.source}`" if place.source else ""
    if is_out_of_memory(error):
        return AceError.of(
            ErrorCode.OUT_OF_MEMORY,
            f"There was not enough memory to run {label}",
            why=message + source,
            remedy="Use smaller examples, or another device.",
            where=place.where,
            details=_trace_text(error),
        )
    if _is_bad_input(error, message):
        given = describe(example, forward_parameters(module))
        return AceError.of(
            ErrorCode.BAD_INPUT,
            f"{owner} cannot take {label} ({given})",
            why=message + source,
            remedy=_remedy(message, module),
            where=place.where,
            details=_trace_text(error),
        )
    typo = next((row for row in _TYPOS if re.search(row.pattern, message)), None)
    return AceError.of(
        ErrorCode.USER_CODE,
        f"{owner} raised {type(error).__name__} on {label}: {message}".removesuffix(": "),
        why=(typo.why if typo else "plain PyTorch raises the same; nothing was traced yet") + source,
        remedy=typo.remedy if typo else "Correct that line; calling the model once in Python shows the same error.",
        where=place.where,
        details=_trace_text(error),
    )


def _is_bad_input(error: Exception, message: str) -> bool:
    """Whether torch rejects sizes or types, or Python the arguments of forward itself."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if is_user_file(frame.filename)]
    if isinstance(error, TypeError) and frames and not re.search(r"required|unexpected keyword|positional", message):
        return False
    return _BAD_INPUT.search(message) is not None


def _trace_text(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


def has_bad_numbers(results: Sequence[Any]) -> bool:
    """Whether any result holds a NaN or an infinity."""
    return any(
        not bool(torch.isfinite(tensor).all())
        for result in results
        for tensor in tensor_leaves(result)
        if tensor.is_floating_point() or tensor.is_complex()
    )
