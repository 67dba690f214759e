"""How A and B were captured, side by side."""

from msgspec.structs import replace

from ace_studio.records.recipes.recipe import ModelChoice, Recipe
from ace_studio.records.results import AttemptStatus, CaptureAttempt, CaptureReport
from tests.gui.breaking import PROBLEM
from tests.gui.comparing import press, two_records
from tests.session.fake_engine_link import result

RECIPE = Recipe(model=ModelChoice(source="net.py", entry="make"))
EXPORT = CaptureAttempt(name="export", status=AttemptStatus.OK, seconds=1.5, ops=12)
FAILED = CaptureAttempt(name="export", status=AttemptStatus.FAILED, seconds=0.5, error=PROBLEM)
PARTIAL = CaptureAttempt(name="partial", status=AttemptStatus.OK, seconds=4.0, ops=14)


def record(taken, *attempts):
    capture = CaptureReport(rung=taken, ops=attempts[-1].ops, seconds=attempts[-1].seconds, rungs=attempts)
    return RECIPE, replace(result(), capture=capture)


def test_methods_stand_side_by_side_and_what_differs_is_named(desk):
    two_records(desk, record("export", EXPORT), record("partial", FAILED, PARTIAL))
    panel = desk.panel("capture")
    shown = panel.compared
    assert shown.isVisible()
    assert not panel.methods.isVisible()
    assert [line.text() for line in shown.summaries] == [
        "A: export captured 12 ops in 1.5 s.", "B: partial captured 14 ops in 4.0 s."]  # fmt: skip
    columns = [(each.title, [each.text(value) for value in each.values]) for each in shown.model.columns]
    assert columns[:3] == [
        ("method", ["export", "partial"]),
        ("difference", ["differs: taken, outcome, reason, ops", "differs: only in B"]),
        ("A: outcome", ["taken: captured, equal to the original", "–"]),
    ]
    assert columns[3:] == [
        ("B: outcome", ["could not capture it: a branch depends on a value", "taken: captured, equal to the original"]),
        ("A: took", ["1.5 s", "–"]),
        ("B: took", ["0.5 s", "4.0 s"]),
        ("A: ops", ["12", "–"]),
        ("B: ops", ["–", "14"]),
    ]
    assert shown.model.columns[3].tips(0).startswith("a branch depends on a value")
    press(desk, "Swap")
    assert shown.summaries[0].text().startswith("A: partial")
    press(desk, "Back to the present")
    assert (panel.methods.isVisible(), shown.isVisible()) == (True, False)


def test_another_time_alone_is_no_difference(desk):
    two_records(desk, record("export", EXPORT), record("export", replace(EXPORT, seconds=9.0)))
    shown = desk.panel("capture").compared
    assert list(shown.model.columns[1].values) == [""]


def test_a_side_without_a_trace_says_so(desk):
    two_records(desk, (RECIPE, result()), record("export", EXPORT))
    shown = desk.panel("capture").compared
    assert shown.summaries[0].text() == "A: not traced"
    assert list(shown.model.columns[1].values) == [""], "nothing is known to differ"
