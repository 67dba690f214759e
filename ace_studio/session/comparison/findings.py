"""What was found on either side, one beside the other: examples, capture methods, breaks and advice."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Generic, NamedTuple, TypeVar

import msgspec

from ace_studio.records.advice import Advice
from ace_studio.records.results import CaptureAttempt, CaptureReport
from ace_studio.records.tensors import TensorSpec

T = TypeVar("T")
Row = dict[str, TensorSpec]


class Change(StrEnum):
    """What became of a finding from A to B."""

    SAME = "same"
    OTHER = "changed"
    ONLY_FIRST = "only in A"
    ONLY_SECOND = "only in B"
    UNKNOWN = "not known of the other side"


class Beside(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """A finding of A and of B that belong together; None on the side that has none."""

    first: T | None
    second: T | None
    change: Change
    parts: tuple[str, ...] = ()
    """What differs, in words of one or two, if it is `Change.OTHER`."""

    @property
    def shown(self) -> T:
        """That of B, or of A where B has none."""
        found = self.first if self.second is None else self.second
        assert found is not None, "one side has it"
        return found


def beside(
    first: Sequence[T] | None,
    second: Sequence[T] | None,
    *,
    key: Callable[[T], Hashable],
    parts: Mapping[str, Callable[[T], object]],
) -> tuple[Beside[T], ...]:
    """The findings with the same key together, of several alike ones in their order; those of B first.

    Args:
        first: Those of A; None if they are not known.
        second: Those of B; None if they are not known.
        key: What makes two findings the same one.
        parts: Name -> what may differ between two that are the same.
    """
    is_known = first is not None and second is not None
    one, other = dict(_numbered(first or (), key)), dict(_numbered(second or (), key))
    found = []
    for name in {**other, **one}:
        mine, theirs = one.get(name), other.get(name)
        differing: tuple[str, ...] = ()
        if not is_known:
            change = Change.UNKNOWN
        elif mine is None or theirs is None:
            change = Change.ONLY_SECOND if mine is None else Change.ONLY_FIRST
        else:
            differing = tuple(part for part, read in parts.items() if read(mine) != read(theirs))
            change = Change.OTHER if differing else Change.SAME
        found.append(Beside(first=mine, second=theirs, change=change, parts=differing))
    return tuple(found)


def _numbered(findings: Sequence[T], key: Callable[[T], Hashable]) -> Iterator[tuple[Hashable, T]]:
    met: Counter[Hashable] = Counter()
    for one in findings:
        name = key(one)
        yield (name, met[name]), one
        met[name] += 1


def rows_beside(first: Sequence[Row] | None, second: Sequence[Row] | None) -> tuple[Beside[Row], ...]:
    """Examples in the order of the tables: equal rows belong together, and those between them by their order."""
    from difflib import SequenceMatcher  # noqa: PLC0415 - few compare examples

    if first is None or second is None:
        return beside(first, second, key=repr, parts={})
    found: list[Beside[Row]] = []
    matcher = SequenceMatcher(None, [repr(row) for row in first], [repr(row) for row in second], autojunk=False)
    for _, start, end, other_start, other_end in matcher.get_opcodes():
        mine, theirs = first[start:end], second[other_start:other_end]
        for at in range(max(len(mine), len(theirs))):
            one = mine[at] if at < len(mine) else None
            other = theirs[at] if at < len(theirs) else None
            same_or_other = Change.SAME if one == other else Change.OTHER
            change = Change.ONLY_SECOND if one is None else Change.ONLY_FIRST if other is None else same_or_other
            found.append(Beside(first=one, second=other, change=change))
    return tuple(found)


class MethodTry(NamedTuple):
    """A capture method that was tried, and whether its graph was taken."""

    outcome: CaptureAttempt
    is_taken: bool


def attempts_beside(first: CaptureReport | None, second: CaptureReport | None) -> tuple[Beside[MethodTry], ...]:
    """The capture methods. Their seconds are single measurements, so another time alone is no difference."""
    return beside(
        _attempts(first),
        _attempts(second),
        key=lambda one: one.outcome.name,
        parts={
            "taken": lambda one: one.is_taken,
            "outcome": lambda one: one.outcome.status,
            "reason": lambda one: one.outcome.error.what if one.outcome.error else "",
            "ops": lambda one: one.outcome.ops,
        },
    )


def _attempts(capture: CaptureReport | None) -> tuple[MethodTry, ...] | None:
    return None if capture is None else tuple(MethodTry(one, one.name == capture.rung) for one in capture.rungs)


def place_key(file: str, line: int, *, code: str, module: str, reason: str) -> Hashable:
    """What makes two breaks the same one: the place in the code and the reason.

    The text of the line counts before its number, so that lines put above it do not make another break of it; and the
    name of the file before its folder, so that a copy of the model can be compared.
    """
    return PurePosixPath(file.replace("\\", "/")).name, module, code.strip() or line, reason


def advice_beside(first: Sequence[Advice] | None, second: Sequence[Advice] | None) -> tuple[Beside[Advice], ...]:
    """The suggestions, by the rule that made them."""
    return beside(
        first,
        second,
        key=lambda card: card.kind,
        parts={
            "what to do": lambda card: (card.title, card.do_first),
            "choices": lambda card: card.change,
            "estimate": lambda card: card.estimate,
        },
    )
