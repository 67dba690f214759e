"""Explains failed traces to the person who wrote the model: one row of ``diagnoses.toml`` per cause, in plain words."""

import re
import tomllib
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

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


_CAUSES = tomllib.loads(Path(__file__).with_name("diagnoses.toml").read_text(encoding="utf-8"))["cause"]
ROWS = tuple(Diagnosis(**{"exceptions": "", **row}) for row in _CAUSES)
"""The first one that fits explains a failure."""
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
