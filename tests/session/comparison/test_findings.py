"""What was found on either side, one beside the other."""

from msgspec.structs import replace

from ace_studio.records.advice import Advice, AdviceQuantity
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.results import AttemptStatus, CaptureAttempt, CaptureReport
from ace_studio.records.tensors import TensorSpec
from ace_studio.session.comparison.findings import (
    Change,
    advice_beside,
    attempts_beside,
    beside,
    place_key,
    rows_beside,
)


def changes(found):
    return [one.change for one in found]


def row(*shape):
    return {"x": TensorSpec(shape=shape)}


def card(kind="keep-ops-high", **more):
    values = {"title": "Keep a at fp32", "why": "12 dB", "estimate": "+6 dB", "quantity": AdviceQuantity.FIDELITY}
    return Advice(kind=kind, **values | more)


def test_findings_with_one_key_belong_together_and_alike_ones_by_their_order():
    found = beside("abab", "bab", key=str.lower, parts={"case": str})
    assert [(one.first, one.second) for one in found] == [("b", "b"), ("a", "a"), ("b", "b"), ("a", None)]
    assert changes(found) == [Change.SAME] * 3 + [Change.ONLY_FIRST]
    assert found[-1].shown == "a"


def test_what_differs_of_two_that_belong_together_is_named():
    (found,) = beside("a", "A", key=str.lower, parts={"case": str, "length": len})
    assert (found.change, found.parts, found.shown) == (Change.OTHER, ("case",), "A")


def test_of_a_side_that_is_not_known_nothing_is_called_a_difference():
    assert changes(beside(None, "ab", key=str, parts={})) == [Change.UNKNOWN] * 2
    assert changes(beside("a", None, key=str, parts={})) == [Change.UNKNOWN]
    assert changes(beside((), "a", key=str, parts={})) == [Change.ONLY_SECOND]
    assert changes(rows_beside(None, (row(1),))) == [Change.UNKNOWN]


def test_an_example_that_was_put_in_between_leaves_the_others_as_they_are():
    first, second = (row(1, 8), row(2, 8)), (row(1, 8), row(7, 7), row(2, 8))
    assert changes(rows_beside(first, second)) == [Change.SAME, Change.ONLY_SECOND, Change.SAME]
    assert changes(rows_beside(second, first)) == [Change.SAME, Change.ONLY_FIRST, Change.SAME]


def test_examples_that_differ_are_compared_by_their_order_and_the_rest_is_of_one_side():
    found = rows_beside((row(1, 8), row(2, 8)), (row(1, 9),))
    assert changes(found) == [Change.OTHER, Change.ONLY_FIRST]
    assert found[0].second == row(1, 9)


def report(taken, *attempts):
    return CaptureReport(rung=taken, ops=3, seconds=1.0, rungs=attempts)


def test_capture_methods_differ_in_outcome_ops_and_which_was_taken_but_not_in_seconds():
    ok, failed = AttemptStatus.OK, AttemptStatus.FAILED
    why = Problem(code=ErrorCode.NOT_CAPTURED, what="a branch", why="", remedy="")
    export = CaptureAttempt(name="export", status=ok, seconds=1.0, ops=3)
    first = report("export", export, CaptureAttempt(name="fx", status=ok, ops=3))
    slower = report("export", replace(export, seconds=9.0), CaptureAttempt(name="fx", status=ok, ops=4))
    assert [one.parts for one in attempts_beside(first, slower)] == [(), ("ops",)]
    other = report("dynamo", replace(export, status=failed, ops=0, error=why), CaptureAttempt(name="dynamo", status=ok))
    found = attempts_beside(first, other)
    assert [one.shown.outcome.name for one in found] == ["export", "dynamo", "fx"]
    assert changes(found) == [Change.OTHER, Change.ONLY_SECOND, Change.ONLY_FIRST]
    assert found[0].parts == ("taken", "outcome", "reason", "ops")
    assert changes(attempts_beside(None, slower)) == [Change.UNKNOWN] * 2


def test_a_break_is_the_same_in_a_copy_of_the_model_and_below_new_lines():
    one = place_key("/a/net.py", 7, code="  print(x)", module="head", reason="print")
    assert one == place_key("C:\\b\\net.py", 9, code="print(x)", module="head", reason="print")
    assert one != place_key("/a/net.py", 7, code="print(x)", module="head", reason="a branch")
    assert one != place_key("/a/net.py", 7, code="print(x)", module="body", reason="print")
    unknown = place_key("/a/net.py", 7, code="", module="", reason="print")
    assert unknown != place_key("/a/net.py", 8, code="", module="", reason="print")


def test_advice_is_matched_by_its_rule():
    other = card(title="Keep b at fp32", change={"plan": {"default": "bf16"}})
    assert advice_beside((card(),), (other,))[0].parts == ("what to do", "choices")
    assert advice_beside((card(),), (card(estimate="+7 dB", why="13 dB"),))[0].parts == ("estimate",)
    assert changes(advice_beside((card(), card("prune")), (card(), card("bf16")))) == [
        Change.SAME, Change.ONLY_SECOND, Change.ONLY_FIRST]  # fmt: skip
