"""When a capture is better than another, and which places stop one."""

import pytest

from ace_studio.engine.pipeline.fixes.outcomes import is_better, places_of
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.fixes import CaptureOutcome
from ace_studio.records.results import CaptureReport, GraphBreak

NOTHING = CaptureOutcome(breaks=1)
WHOLE = CaptureOutcome(rung="export", ops=20)


def parts(breaks: int, ops: int, left: int) -> CaptureOutcome:
    return CaptureOutcome(rung="partial", breaks=breaks, ops=ops, ops_left_eager=left)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (NOTHING, WHOLE, True),
        (NOTHING, parts(2, 10, 5), True),
        (NOTHING, NOTHING, False),
        (parts(2, 10, 5), WHOLE, True),
        (parts(2, 10, 5), NOTHING, False),
        (parts(2, 10, 5), parts(1, 10, 5), True),
        (parts(2, 10, 5), parts(1, 8, 4), True),  # the break's own ops are gone
        (parts(2, 10, 5), parts(1, 9, 7), True),
        (parts(2, 10, 5), parts(1, 2, 13), False),  # a break less, and nearly everything lost
        (parts(2, 10, 5), parts(2, 11, 4), True),
        (parts(2, 10, 5), parts(2, 10, 5), False),
        (parts(1, 10, 5), parts(2, 12, 3), False),
        (WHOLE, WHOLE, False),
    ],
)
def test_better_is_more_captured(before: CaptureOutcome, after: CaptureOutcome, expected: bool) -> None:
    assert is_better(before, after) is expected


def test_breaks_are_the_places_and_without_them_the_problems_are() -> None:
    problems = [
        Problem(code=ErrorCode.NOT_CAPTURED, what="x", where=where)
        for where in ("/m/net.py:4, module blocks.1", "/m/net.py:4", "[inputs]", "", "/a: b/net.py:7")
    ]
    assert places_of(problems) == (("/m/net.py", 4), ("/a: b/net.py", 7))
    report = CaptureReport(
        rung="partial",
        ops=1,
        seconds=0.0,
        graph_breaks=(GraphBreak(file="/m/net.py", line=9, reason="x"), GraphBreak(file="", line=0, reason="y")),
    )
    assert places_of(problems, report) == (("/m/net.py", 9),)
