"""The kinds of fixes, one row each: where a kind applies, and what it changes."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from torch import nn

from ace_studio.engine.fixes.branches import Branch, CannotRewriteError, branch_at, guarded_operation
from ace_studio.engine.fixes.cond import cond_text
from ace_studio.engine.fixes.constants import ValueCalls, value_calls
from ace_studio.engine.fixes.spots import FoundFunction, Spot
from ace_studio.engine.fixes.where import where_text
from ace_studio.records.fixes import FixKind
from ace_studio.records.recipes.recipe import CaptureControl, ControlKind


@dataclass(frozen=True)
class ProposedFix:
    """A fix that may be tried."""

    kind: FixKind
    title: str
    file: str
    line: int
    note: str = ""
    control: CaptureControl | None = None
    text: str = ""
    """The whole changed file, for a change of the source."""
    values: ValueCalls | None = None
    """Calls whose values must be known before the change can be written."""
    refusal: str = ""
    """Why it cannot be tried; empty if it can."""

    @property
    def change(self) -> tuple[object, ...]:
        """A key of what it changes; fixes of two places may be the same."""
        instrumented = self.values.instrumented() if self.values else ""
        place = (self.file, self.line) if self.refusal else ()
        return (self.kind, self.control, self.file if self.control is None else "", self.text, instrumented, place)


@dataclass(frozen=True)
class FixRow:
    """One kind of fix."""

    kind: FixKind
    find: Callable[[Spot], Iterator[ProposedFix]]
    """Yields the fixes of this kind for a place, if it applies there."""


def proposed_fixes(spot: Spot) -> Iterator[ProposedFix]:
    """Yield all fixes for a place, the most likely to help first."""
    for row in FIX_ROWS:
        yield from row.find(spot)


def is_changeable(spot: Spot) -> bool:
    """Whether the file is the user's own; installed packages are not patched."""
    return spot.source is not None and not any(part in spot.file for part in ("site-packages", "dist-packages"))


def _branch_row(kind: FixKind, rewrite: Callable[[Branch], str], title: str, note: Callable[[Branch], str]) -> FixRow:
    def find(spot: Spot) -> Iterator[ProposedFix]:
        branch = branch_at(spot) if is_changeable(spot) else None
        if branch is None:
            return
        try:
            text, refusal = rewrite(branch), ""
        except CannotRewriteError as error:
            text, refusal = "", str(error)
        yield ProposedFix(kind, title, spot.file, spot.line, note=note(branch), text=text, refusal=refusal)

    return FixRow(kind, find)


def _where_note(branch: Branch) -> str:
    text = "Both sides are computed at every call."
    if guarded := guarded_operation(branch.sides()):
        text += (
            f" The branch may guard {guarded} against values for which it is undefined: a NaN or infinity of the side "
            "that is not taken does not reach the result, but it does reach gradients, and integers raise."
        )
    return text


def _cond_note(_: Branch) -> str:
    return (
        "One side is computed at every call, and both must give results of the same structure, shape and type. "
        "Not every target supports torch.cond; outside of a graph, its first call compiles it."
    )


def _constants(spot: Spot) -> Iterator[ProposedFix]:
    calls = value_calls(spot) if is_changeable(spot) else None
    if calls is not None:
        title = f"replace {calls.words} by its constant value on all examples"
        yield ProposedFix(FixKind.CONSTANT, title, spot.file, spot.line, values=calls)


# --- controls ---

_PYTHONS_OWN = frozenset({"builtins", "math", "operator"})


def _is_pythons(found: FoundFunction) -> bool:
    return found.reference.partition(":")[0] in _PYTHONS_OWN or inspect.isbuiltin(found.target)


def _is_module_class(found: FoundFunction) -> bool:
    return inspect.isclass(found.target) and issubclass(found.target, nn.Module)


def _is_torchs(found: FoundFunction) -> bool:
    return found.reference.partition(":")[0].partition(".")[0] in ("torch", "_operator")


def _user_functions(spot: Spot) -> Iterator[FoundFunction]:
    """Functions written in Python that are not torch's."""
    for found in spot.functions():
        if not (_is_module_class(found) or _is_pythons(found) or _is_torchs(found)):
            yield found


def _wrappable(spot: Spot) -> Iterator[FoundFunction]:
    """Functions of a module, Python's own included; not methods, whose object a graph cannot hold."""
    for found in spot.functions():
        is_method = "." in found.reference.rpartition(":")[2]
        if not (_is_module_class(found) or is_method or _is_torchs(found)):
            yield found


def _control_row(
    kind: ControlKind, title: str, note: str, find_functions: Callable[[Spot], Iterator[FoundFunction]]
) -> FixRow:
    def find(spot: Spot) -> Iterator[ProposedFix]:
        for found in find_functions(spot):
            if found.reference:
                control = CaptureControl(function=found.reference, treat_as=kind)
                words = title.format(name=found.name)
                yield ProposedFix(FixKind(kind.value), words, spot.file, spot.line, note=note, control=control)

    return FixRow(FixKind(kind.value), find)


FIX_ROWS: tuple[FixRow, ...] = (
    _branch_row(FixKind.WHERE, where_text, "compute both sides and choose with torch.where", _where_note),
    _branch_row(FixKind.COND, cond_text, "make the sides functions of torch.cond", _cond_note),
    FixRow(FixKind.CONSTANT, _constants),
    _control_row(
        ControlKind.NONSTRICT_TRACE,
        "mark {name} as nonstrict_trace: run it while tracing instead of reading its code",
        "All that it reads besides its arguments is frozen at its value during tracing.",
        _user_functions,
    ),
    _control_row(
        ControlKind.ALLOW_IN_GRAPH,
        "mark {name} as allow_in_graph: keep the call as one op of the compiler's graph",
        "It must consist of torch operations, depend only on its arguments and have no side effects.",
        _user_functions,
    ),
    _control_row(
        ControlKind.FX_WRAP,
        "wrap {name}: record the call instead of making it with a placeholder",
        "It affects the fx capture method only; the call is traced when the recorded graph is exported.",
        _wrappable,
    ),
    _control_row(
        ControlKind.LEAF,
        "keep modules of the class {name} as single calls while fx traces",
        "It affects the fx capture method only; the module is traced when the recorded graph is exported.",
        Spot.classes,
    ),
    _control_row(
        ControlKind.DISABLE,
        "keep {name} out of every graph",
        "It runs as plain Python between the subgraphs and is not compressed.",
        _user_functions,
    ),
)
"""A new kind of fix is a row here and a member of `FixKind`."""
