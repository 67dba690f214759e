"""The order in which fixes are shown and taken."""

from ace_studio.records.fixes import CaptureOutcome, FixKind, FixReport, FixStatus, ranked_fixes


def fix(title: str, status: FixStatus, **after) -> FixReport:
    return FixReport(kind=FixKind.WHERE, title=title, status=status, file="m.py", line=1, after=CaptureOutcome(**after))


def test_green_fixes_are_first_and_those_that_leave_less_eager_before_others():
    fixes = [
        fix("failed", FixStatus.FAILED),
        fix("one break", FixStatus.GREEN, breaks=1),
        fix("ops left", FixStatus.GREEN, ops_left_eager=3),
        fix("best", FixStatus.GREEN),
        fix("wrong", FixStatus.WRONG),
        fix("also best", FixStatus.GREEN),
    ]
    titles = [one.title for one in ranked_fixes(fixes)]
    assert titles == ["best", "also best", "ops left", "one break", "failed", "wrong"]
