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
        (_run("int8-static", "fp32", "fused", "fp32"), "fp32 (0 of 2 ops int8-static)"),
        (_run("int8-static + bf16", "bf16", "fp32", "bf16"), "bf16 (0 of 3 ops int8-static)"),
        (_run("int8-static + bf16", "int8-static", "bf16"), "int8-static + bf16"),
        (_run("int8-static", "int8-static", "fp32", "fp32"), "fp32 (1 of 3 ops int8-static)"),
        (_run("int8-static", "int8-static", "fp32"), "int8-static"),
        (_run("int8-static", "unknown", "fp32"), "fp32 (0 of 1 ops int8-static)"),
        (_run("int8-static", "unknown", "fp32", planned="fp32"), "fp32 (0 of 1 ops int8-static)"),
        (_run("int8-static", "unknown", "fused"), "int8-static"),
        (_run("int8-static", "fused", "folded"), "int8-static"),
        (_run("int8-static"), "int8-static"),
        (_run("fp32", "int8-static", "int8-static"), "fp32"),
    ],
)
def test_a_run_in_which_few_ops_have_the_precision_that_was_asked_for_says_what_was_built(run, words):
    assert run.built_words == words
    assert run.built_precision == words.partition(" (")[0]


def _of(op, planned, actual):
    return OpReport(id="", op=op, module="", shape="", device="cpu", planned=planned, actual=actual)


PRODUCT, SUM = "aten.linear.default", "aten.add.Tensor"


def test_ops_without_arithmetic_have_no_say_in_the_name():
    ops = (_of(PRODUCT, "int8-static", "int8-static"), *[_of(SUM, "int8-static", "fp32")] * 9)
    assert TargetRun(target="t", status=RunStatus.OK, precision="int8-static", ops=ops).built_words == "int8-static"


def test_a_plan_that_asks_for_its_default_at_few_ops_says_at_how_many():
    ops = (_of(PRODUCT, "int8-static", "int8-static"), *[_of(PRODUCT, "fp32", "fp32")] * 9)
    run = TargetRun(target="t", status=RunStatus.OK, precision="int8-static", ops=ops, options={"groups": "64"})
    assert run.built_words == "int8-static (1 of 10 ops, groups 64)"
    assert run.built_precision == "int8-static"


@pytest.mark.parametrize(
    ("run", "is_exact"),
    [
        (_run("fp32", "fp32"), True),
        (_run("int8-static", "fp32", "fused", "unknown"), True),
        (_run("int8-static", "fp32", "int8-weight"), False),
        (_run("int8-static", "unknown"), False),
        (_run("int8-static"), False),
    ],
)
def test_a_run_is_exact_if_all_that_is_known_of_it_is_at_fp32(run, is_exact):
    assert run.is_exact is is_exact
