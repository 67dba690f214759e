"""Fixes for places where capture stops, and how each attempt ended."""

from collections.abc import Iterable
from enum import StrEnum

import msgspec

from ace_studio.records.errors import Problem
from ace_studio.records.recipes.recipe import CaptureControl


class FixKind(StrEnum):
    """What a fix does."""

    NONSTRICT_TRACE = "nonstrict_trace"
    """Control: run the function while tracing instead of reading its code."""
    ALLOW_IN_GRAPH = "allow_in_graph"
    """Control: keep the call as one op."""
    FX_WRAP = "fx_wrap"
    """Control: fx records the call instead of making it."""
    LEAF = "leaf"
    """Control: fx keeps modules of the class whole."""
    DISABLE = "disable"
    """Control: keep the function out of every graph."""
    WHERE = "where"
    """Patch: a branch by a value becomes ``torch.where``: both sides are computed, one is taken."""
    COND = "cond"
    """Patch: a branch by a value becomes ``torch.cond``: one side is computed."""
    CONSTANT = "constant"
    """Patch: a number computed from a value becomes a constant, which is equal on every example."""


class FixStatus(StrEnum):
    """How an attempt ended."""

    GREEN = "green"
    """Captured better than before, and equal to eager on every input."""
    NO_EFFECT = "no-effect"
    """Traced, but the break is still there."""
    FAILED = "failed"
    """Could not be traced or run."""
    WRONG = "wrong"
    """Traced, but not equal to eager."""


class CaptureOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """How well a model was captured, to compare before and after."""

    rung: str = ""
    """Empty if nothing was captured."""
    breaks: int = 0
    ops: int = 0
    ops_left_eager: int = 0


class FixReport(msgspec.Struct, frozen=True, kw_only=True):
    """One fix that was tried in a copy; the user's files are as they were."""

    kind: FixKind
    title: str
    """What it does, such as ``mark get_magic_num as nonstrict_trace``."""
    status: FixStatus
    file: str
    """File of the line that it changes."""
    line: int
    control: CaptureControl | None = None
    """The entry for the recipe, if the fix is a control."""
    patch: str = ""
    """Unified diff against `file`, for a change of the source."""
    before: CaptureOutcome = CaptureOutcome()
    after: CaptureOutcome = CaptureOutcome()
    inputs_compared: int = 0
    """Inputs on which it was compared with eager."""
    seconds: float = 0.0
    note: str = ""
    """A caveat, such as a different result at other values."""
    problem: Problem | None = None


_ORDER = {status: place for place, status in enumerate(FixStatus)}


def ranked_fixes(fixes: Iterable[FixReport]) -> tuple[FixReport, ...]:
    """Sort the fixes: green ones first, those that leave less eager before others; else in the order given."""
    return tuple(sorted(fixes, key=lambda fix: (_ORDER[fix.status], fix.after.breaks, fix.after.ops_left_eager)))
