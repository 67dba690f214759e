"""Nodes of a rewritten graph are mapped to the ops of the graph that it was made from."""

from ace_studio.engine.targets import TARGETS
from ace_studio.engine.targets.shared.kernels import (
    GraphStep,
    Kernel,
    actuals_of,
    adopt_orphans,
    covered_steps,
    owners_of,
)
from tests.engine.targets.onnx_cases import captured_easy, job_for

OLD = [
    GraphStep("conv", ("x", "w"), ("c",)),
    GraphStep("norm", ("c", "s"), ("n",)),
    GraphStep("relu", ("n",), ("r",)),
    GraphStep("scale", ("table",), ("s",)),
]


def test_a_fused_step_stands_for_all_old_steps_between_its_inputs_and_outputs():
    covered = covered_steps([GraphStep("fused", ("x", "w2"), ("r",))], OLD, inputs=["x"])
    assert covered == {"fused": ("relu", "norm", "conv")}


def test_a_value_that_another_new_step_makes_ends_the_walk():
    new = [GraphStep("first", ("x",), ("c",)), GraphStep("second", ("c",), ("r",))]
    assert covered_steps(new, OLD, inputs=["x"]) == {"first": ("conv",), "second": ("relu", "norm")}


def test_steps_that_depend_on_no_input_are_constants_and_belong_to_nobody():
    assert "scale" not in covered_steps([GraphStep("fused", ("x",), ("r",))], OLD, inputs=["x"])["fused"]


def test_a_step_without_an_old_value_is_found_by_the_name_that_the_runtime_decorated():
    new = [GraphStep("fused conv", ("x",), ("c_other",)), GraphStep("relu_nchwc", ("c_other",), ("r_other",))]
    assert covered_steps(new, OLD, inputs=["x"]) == {"fused conv": ("conv",), "relu_nchwc": ("relu", "norm")}


def test_a_weighted_op_owns_a_step_before_the_last_one():
    owners = {"relu": ("relu_op",), "conv": ("conv_op",)}
    assert owners_of({"fused": ("relu", "conv")}, owners, frozenset({"conv_op"})) == {"fused": ("conv_op", "relu_op")}
    assert owners_of({"fused": ("relu", "conv")}, owners, frozenset()) == {"fused": ("relu_op", "conv_op")}


def test_an_orphan_goes_to_its_readers_if_they_agree_and_else_to_its_source():
    steps = [GraphStep("a", ("x",), ("va",)), GraphStep("orphan", ("va",), ("vo",)), GraphStep("b", ("vo",), ("vb",))]
    owners = {"a": ("op_a",), "orphan": (), "b": ("op_b",)}
    adopt_orphans(steps, owners)
    assert owners["orphan"] == ("op_b",)
    owners = {"a": ("op_a",), "orphan": (), "b": ("op_b",), "c": ("op_c",)}
    adopt_orphans([*steps, GraphStep("c", ("vo",), ("vc",))], owners)
    assert owners["orphan"] == ("op_a",)


def test_kernels_of_a_mask_do_not_make_an_op_at_fp32_an_8_bit_one():
    job = job_for(TARGETS["eager"], captured_easy("mlp"))
    op_id = next(iter(job.plan.ops))
    mask = Kernel("find", "NonZero", "int8-static", (op_id,), latency_ms=2.0)
    write = Kernel("write", "ScatterNDUpdate", "fp32", (op_id,), latency_ms=1.0)
    found = {one.op_id: one for one in actuals_of(job, [mask, write], runtime="OpenVINO", folded={})}[op_id]
    assert (found.actual, found.reason, found.latency_ms) == (
        "fp32",
        "OpenVINO ran ScatterNDUpdate; default of the plan",
        3.0,
    )
    (alone,) = (one for one in actuals_of(job, [mask], runtime="OpenVINO", folded={}) if one.op_id == op_id)
    assert alone.actual == "int8-static"
