"""Explains failed traces to the person who wrote the model: one row per cause, in plain words."""

from __future__ import annotations

import re
import traceback
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn

from ace_studio.engine.capture.places import CodePlace, find_place
from ace_studio.engine.torch_private.dynamo import failure_frames, failure_kind
from ace_studio.records.errors import ErrorCode, Problem

_MAX_DETAILS = 20_000


@dataclass(frozen=True)
class Diagnosis:
    """One row: how the cause is recognised, and how it is explained. ``{owner}`` is ``forward() of X``."""

    exceptions: str
    """Names of exception classes, any of which must be among the error's bases; empty for all."""
    pattern: str
    """Must be found in the tracer's message or kind."""
    what: str
    why: str
    remedy: str
    is_about_line: bool = True
    """Whether the last line that the tracer reached is the one to change."""

    def fits(self, names: frozenset[str], text: str) -> bool:
        """Whether this row explains an error."""
        wanted = self.exceptions.split()
        return (not wanted or not names.isdisjoint(wanted)) and re.search(self.pattern, text, re.IGNORECASE) is not None


@dataclass(frozen=True)
class Failure:
    """Why a capture attempt gave no graph."""

    problem: Problem
    is_explained: bool = True
    """Whether its cause is known; False if only the fallback describes it."""
    example: int = 0
    """Number of the user's example that the graph does not reproduce; 0 if it is about none."""


_FX_ROWS = (
    # The last capture method cannot tell a size from a value: it sees only that a decision depends on the input.
    Diagnosis(
        "TraceError",
        r"cannot be used as inputs to control flow",
        "{owner} decides by something that depends on its input",
        "placeholders have neither sizes nor values while this method traces, and a graph records one path",
        "For values use torch.where or torch.cond; a size that is always the same can be read from an attribute.",
    ),
    Diagnosis(
        "TraceError",
        r"cannot be iterated",
        "{owner} loops over a tensor, or unpacks one into names",
        "how many parts there are is not known to a placeholder",
        "Take the parts by index (parts[0], parts[1]), or leave this to another capture method.",
    ),
    Diagnosis(
        "TraceError RuntimeError TypeError",
        r"'len' is not supported in symbolic tracing|\b(Proxy|Attribute)\b",
        "{owner} gives a placeholder to a function that wants a plain number",
        "the function is not one of torch's, so the call is not recorded by itself",
        "Add a control for that function: as = 'fx_wrap' records the call instead of making it.",
    ),
)
_VALUE_BRANCH = Diagnosis(
    "",
    r"data-dependent branching|could not guard on data-dependent expression|bool\(\) on a .*tensor",
    "{owner} chooses a branch by a tensor's value",
    "a graph records one path; this value is known only when it runs",
    "Use torch.where or torch.cond there, with two results of the same shape; a plain argument can choose instead of a "
    "tensor. Multiplying one result by the condition is not the same: it keeps that result's shape and its NaN.",
)

ROWS: tuple[Diagnosis, ...] = (
    # What the tracer calls a user error comes first: in some releases it is a kind of "unsupported" as well.
    Diagnosis(
        "UserError ConstraintViolationError",
        r"specialized it to be a constant|specialized to be a constant|inferred to be a constant|specialized due to",
        "{owner} fixes a size that must stay free{sizes}",
        "the examples or the recipe say that it changes, but the code turns it into one number or compares with one",
        "Remove what needs one size (==, int(), math functions, a Python loop over it), or give one size only.",
    ),
    Diagnosis(
        "UserError ConstraintViolationError",
        r"constraints violated",
        "{owner} does not accept every size that the examples ask for{sizes}",
        "the code ties the size to another one, to a multiple, or to a limit",
        "Choose example sizes that obey the same rule, or set that dimension to static in the recipe.",
    ),
    Diagnosis(
        "",
        r"in output, which is not a known type",
        "{owner} returns {kind}, an object that torch does not see into",
        "a graph gives tensors back, in tuples, lists, dictionaries, named tuples or dataclasses",
        "Return the tensors themselves; a text model stops returning its cache if the examples say use_cache=False.",
        is_about_line=False,
    ),
    Diagnosis(
        "",
        r"pack_padded_sequence|pad_packed_sequence|packedsequence",
        "{owner} packs rows of different lengths",
        "a packed sequence is as long as the sum of the lengths, which are values, so a graph has no size for it",
        "Give the recurrent layer the padded rows, and set what lies behind the end of each row to 0 afterwards "
        "(torch.where with a mask): in one direction the other results are the same.",
    ),
    *_FX_ROWS,
    _VALUE_BRANCH,
    Diagnosis(
        "",
        r"could not extract specialized integer|data-dependent (value|operator)|\.item\(\)|_local_scalar_dense",
        "{owner} turns a tensor's value into a plain number",
        "the number is known only when the graph runs, so neither sizes nor Python code may depend on it",
        "Keep it a tensor (a mask instead of a slice), or pass the number as a plain argument.",
    ),
    Diagnosis(
        "",
        r"dynamicoutputshape|dynamic shape operator|nonzero|masked_select|unique",
        "{owner} makes a tensor whose size depends on values",
        "a graph needs to know how its sizes follow from the input sizes",
        "Use a mask and a fixed size instead of selecting (torch.where with three arguments, topk with a fixed k).",
    ),
    Diagnosis(
        "",
        r"numpy\(\)|numpy_array|numpy conversion|\.numpy|np\.",
        "{owner} leaves torch for numpy",
        "only operations on torch tensors are recorded",
        "Use the torch function of the same meaning, or compute it once outside forward and keep it as a buffer.",
    ),
    Diagnosis(
        "",
        r"scriptmodule|scriptfunction|torchscript|torch\.jit",
        "{owner} calls a part compiled with TorchScript",
        "what it does inside cannot be recorded a second time",
        "Use the Python version of that module instead of the compiled one.",
    ),
    Diagnosis(
        "",
        r"compiler\.disable|_dynamo\.disable",
        "{owner} calls a function that is kept away from the tracer",
        "it is marked as disabled, by a decorator or by a control, and a whole graph cannot hold such a call",
        "Take the mark away; as = 'nonstrict_trace' records what such a function does without reading its code.",
    ),
    Diagnosis(
        "",
        r"graph_break\(\)|skipped|skip function|marked as skipped|builtin|c function|disallowed",
        "{owner} calls something that cannot be recorded",
        "its Python or compiled code is not made of torch operations",
        "Add a control for the function: as = 'nonstrict_trace' runs it instead of reading it; or move the call out.",
    ),
    Diagnosis(
        "",
        r"generator|context manager|try/except|exception handler|with block",
        "{owner} uses a Python construct that cannot be recorded",
        "control flow around tensors must be plain for a graph to be drawn from it",
        "Take the construct out of forward, or do its work before the model is called.",
    ),
    Diagnosis(
        "OutOfMemoryError MemoryError",
        "",
        "There was not enough memory to capture {owner}",
        "capturing keeps one description of every intermediate result",
        "Use smaller examples, or close other programs.",
    ),
    Diagnosis(
        "RecursionError",
        "",
        "{owner} calls itself too deeply to be recorded",
        "every call is followed, and Python's limit was reached",
        "Turn the recursion into a loop.",
    ),
)
_FALLBACK = Diagnosis(
    "",
    "",
    "{owner} does something that cannot be recorded in a graph",
    "the operation on that line could not be followed",
    "Write that line with plain torch operations, or move it out of forward; the details hold torch's own message.",
)
_SIZE_NAME = re.compile(r"L((?:\['?[^\]']+'?\])+)\.size\(\)\[(\d+)\]")


def diagnose(error: BaseException, module: nn.Module, *, leaf_names: Sequence[str], printed: str) -> Failure:
    """Explain a failed trace to the person who wrote the model.

    Args:
        error: What the tracer raised.
        module: The user's module, to find the part that the line belongs to.
        leaf_names: Names of all leaves of the traced example, for tracers that number them.
        printed: Output while tracing; goes into the details.
    """
    place = find_place(failure_frames(error), module)
    names = frozenset(base.__name__ for base in type(error).__mro__)
    text = f"{type(error).__name__} {failure_kind(error)} {error}"
    if any(isinstance(child, torch.jit.ScriptModule) for child in module.modules()):
        text += " (TorchScript inside)"  # tracers fail in such a module with all kinds of messages
    if "pad_packed_sequence" in place.source or "pack_padded_sequence" in place.source:
        text += " (PackedSequence there)"  # and at such a line, by what they try first
    row = next((row for row in ROWS if row.fits(names, text)), _FALLBACK)
    owner = place.class_name if row.is_about_line else type(module).__name__
    words = {"owner": f"forward() of {owner}", "sizes": _named_sizes(str(error), leaf_names), "kind": _kind(str(error))}
    problem = Problem(
        code=ErrorCode.NOT_CAPTURED,
        what=row.what.format(**words),
        why=row.why + (_line_text(place) if row.is_about_line else ""),
        remedy=row.remedy,
        where=place.where if row.is_about_line else "",
        details=("".join(traceback.format_exception(error)) + "\n" + printed)[:_MAX_DETAILS],
    )
    return Failure(problem, is_explained=row is not _FALLBACK)


def _line_text(place: CodePlace) -> str:
    return f"; the line reads `{place.source}`" if place.source else ""


def _kind(message: str) -> str:
    """Name of the class in a message: ``DynamicCache``."""
    match = re.search(r"<class '(?:[\w.<>]*\.)?(\w+)'>", message)
    return match.group(1) if match else "something"


def _named_sizes(message: str, leaf_names: Sequence[str]) -> str:
    """The sizes that a message names: ``: x.1``."""
    found: dict[str, None] = {}
    for keys, dim in _SIZE_NAME.findall(message):
        parts = re.findall(r"\['?([^\]']+)'?\]", keys)
        if parts[0] == "flat_args" and parts[1].isdigit() and int(parts[1]) < len(leaf_names):
            parts = [leaf_names[int(parts[1])]]
        found[".".join([*parts, dim])] = None
    return ": " + ", ".join(found) if found else ""
