"""The rows of the capture methods as data: whether each is tried, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass

from ace_studio.gui.words.formatting import NOTHING, plural, seconds_text
from ace_studio.records.errors import Problem
from ace_studio.records.recipes.recipe import ALL_CAPTURE_METHODS
from ace_studio.records.results import AttemptStatus, CaptureAttempt
from ace_studio.session.document import Document

METHOD_TIPS: dict[str, str] = {
    "export": "torch.export without reading the code: the fastest, and the most often successful",
    "export-strict": "torch.export that reads the code: captures some models that the method above cannot",
    "dynamo": "torch.compile's tracer, required to give one graph: keeps calls that are allowed in the graph",
    "fx": "torch.fx with placeholders for values: no branches on values, whole modules can be kept",
    "partial": "in subgraphs: Python runs between them, and the subgraphs are compressed",
}
STATUS: dict[AttemptStatus, tuple[str, str, str]] = {
    AttemptStatus.OK: ("captured, equal to eager", "good", "good"),
    AttemptStatus.FAILED: ("could not capture it", "bad", "bad"),
    AttemptStatus.WRONG: ("captured, but not equal to eager", "bad", "bad"),
    AttemptStatus.TIMEOUT: ("took too long", "clock", "warn"),
    AttemptStatus.CRASHED: ("ended the engine process", "bad", "bad"),
    AttemptStatus.SKIPPED: ("not tried", "skip", "dim"),
}
"""Status -> words, icon, role."""


@dataclass(frozen=True, kw_only=True)
class MethodRow:
    """One row of the list."""

    name: str
    is_on: bool
    words: str
    icon: str
    role: str
    seconds: str = NOTHING
    ops: str = NOTHING
    problem: Problem | None = None
    is_taken: bool = False


def method_rows(document: Document) -> tuple[MethodRow, ...]:
    """All capture methods: those of the recipe in its order, then those that are switched off."""
    asked = document.recipe.capture.rungs
    outcomes = {one.name: one for one in document.rungs}
    names = (*asked, *(name for name in ALL_CAPTURE_METHODS if name not in asked))
    return tuple(_row(name, document, outcomes.get(name), is_on=name in asked) for name in names)


def _row(name: str, document: Document, outcome: CaptureAttempt | None, *, is_on: bool) -> MethodRow:
    if document.rung_at_work == name:
        detail = document.activity.detail.removeprefix(f"{name}: ")
        words = f"running: {detail}" if detail and detail != name else "running …"
        return MethodRow(name=name, is_on=is_on, words=words, icon="run", role="accent")
    if outcome is None:
        words = "waits" if document.activity.is_working and document.rung_at_work and is_on else ""
        return MethodRow(name=name, is_on=is_on, words=words or ("" if is_on else "off"), icon="", role="dim")
    words, icon, role = STATUS[outcome.status]
    was_tried = outcome.status is not AttemptStatus.SKIPPED
    taken = document.capture is not None and document.capture.rung == name and outcome.status is AttemptStatus.OK
    if outcome.error is not None and was_tried:
        words = f"{words}: {outcome.error.what}"
    return MethodRow(
        name=name, is_on=is_on, words=f"{words} – taken" if taken else words, icon=icon, role=role,
        seconds=seconds_text(outcome.seconds) if was_tried else NOTHING,
        ops=str(outcome.ops) if outcome.ops else NOTHING, problem=outcome.error, is_taken=taken,
    )  # fmt: skip


def wants_batch_only(document: Document) -> bool:
    """Whether a method took too long, and keeping only the batch dynamic may help."""
    was_slow = any(one.status is AttemptStatus.TIMEOUT for one in document.rungs)
    return was_slow and not document.recipe.capture.batch_only and not document.activity.is_working


def capture_summary(document: Document) -> str:
    """The last capture in one sentence."""
    capture = document.capture
    if capture is None or document.activity.is_working:
        return ""
    subgraphs = len(capture.pieces)
    size = f"{plural(capture.ops, 'op')} in {plural(subgraphs, 'subgraph')}" if subgraphs else plural(capture.ops, "op")
    if capture.cached:
        return f"Cached capture: {size}, by {capture.rung}. Nothing was traced."
    return f"{capture.rung} captured {size} in {seconds_text(capture.seconds)}."


def moved(methods: tuple[str, ...], name: str, step: int) -> tuple[str, ...]:
    """The methods with one of them tried earlier (-1) or later (+1)."""
    if name not in methods:
        return methods
    at = methods.index(name)
    to = max(0, min(len(methods) - 1, at + step))
    others = [one for one in methods if one != name]
    return (*others[:to], name, *others[to:])
