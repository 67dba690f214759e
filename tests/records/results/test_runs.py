"""What a run says of the precision that it was built at."""

import pytest

from ace_studio.records.results import OpReport, RunStatus, TargetRun


def _run(precision, *actual, planned="int8-static"):
    ops = tuple(
        OpReport(id=f"op_{at}", op="o", module="", shape="", device="cpu", planned=planned, actual=one)
        for at, one in enumerate(actual)
    )
    return TargetRun(target="openvino", status=RunStatus.OK, precision=precision, ops=ops)


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (_run("int8-static", "fp32", "fused", "fp32"), "fp32 (int8-static asked: 0 of 3 ops)"),
        (_run("int8-static + bf16", "bf16", "fp32", "bf16"), "bf16 (int8-static asked: 0 of 3 ops)"),
        (_run("int8-static", "int8-static", "fp32", "fp32"), "int8-static"),
        (_run("int8-static", "unknown", "fp32"), "int8-static"),
        (_run("int8-static", "unknown", "fp32", planned="fp32"), "fp32 (int8-static asked: 0 of 2 ops)"),
        (_run("int8-static", "fused", "folded"), "int8-static"),
        (_run("int8-static"), "int8-static"),
        (_run("fp32", "int8-static", "int8-static"), "fp32"),
    ],
)
def test_a_run_in_which_no_op_has_the_precision_that_was_asked_for_says_what_was_built(run, words):
    assert run.built_words == words
    assert run.built_precision == words.partition(" (")[0]
