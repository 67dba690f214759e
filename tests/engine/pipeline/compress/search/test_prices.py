"""Prices of precisions: what runtimes told of their builds, as groups of ops with choices."""

import pytest

from ace_studio.engine.pipeline.compress.search.prices import PricedBuild, make_mixture
from ace_studio.records.graph import GraphTable, OpKind
from ace_studio.records.recipes.plan import Precision

STATIC, FP32 = Precision.INT8_STATIC, Precision.FP32
OPS = {
    "q": "aten.linear.default",
    "k": "aten.linear.default",
    "gelu": "aten.gelu.default",
    "out": "aten.linear.default",
}


def _table():
    """An input that q and k read; gelu reads q; out reads gelu and k."""
    names = ["x", *OPS]
    n = len(names)
    return GraphTable(
        op_id=tuple(names), kind=(OpKind.INPUT, *(OpKind.OP,) * 4), op=("input", *OPS.values()),
        module=("",) * n, shape=("",) * n, dtype=("float32",) * n, device=("cpu",) * n, file=(-1,) * n, line=(0,) * n,
        flops=(0, 100, 100, 10, 200), weight_bytes=(0, 400, 400, 0, 800), output_bytes=(40,) * n,
        edge_source=(0, 0, 1, 3, 2), edge_target=(1, 2, 3, 4, 4),
    )  # fmt: skip


def _builds(*, times=True):
    low = dict.fromkeys(("q", "k", "out"), STATIC) | {"gelu": FP32}
    exact = dict.fromkeys(OPS, FP32)
    fast = {"q": 1.0, "k": 1.0, "gelu": 1.0, "out": 2.0}
    slow = {"q": 2.0, "k": 2.0, "out": 6.0}
    return [
        PricedBuild(STATIC, low, 0.5, fast if times else {}, noise=2e-3, size_bytes=900),
        PricedBuild(FP32, exact, 1.0, slow if times else {}, {"gelu": "q"}, noise=0.0, size_bytes=2000),
    ]


NOISE = {STATIC: {"q": 1e-4, "k": 2e-4, "out": 7e-4}}


def _mixture(**named):
    builds = named.pop("builds", None) or _builds(**named)
    return make_mixture(_table(), builds, NOISE, seconds_per_byte=1e-6, baseline_ms=10.0)


def test_ops_that_read_one_value_decide_together():
    assert [group.op_ids for group in _mixture().groups] == [("q", "k"), ("out",)]


def test_ops_that_a_runtime_computes_in_one_kernel_decide_together():
    static, exact = _builds()
    fused = PricedBuild(STATIC, static.assigned, 0.5, static.op_ms, {"out": "k"}, noise=2e-3)
    assert [group.op_ids for group in _mixture(builds=[fused, exact]).groups] == [("q", "k", "out")]


def test_the_times_are_the_runtimes_own_scaled_to_the_measured_latency():
    first, second = _mixture().groups
    assert [choice.time for choice in first.choices] == pytest.approx([0.5 * 3 / 5, 1.0 * 4 / 10])
    assert [choice.time for choice in second.choices] == pytest.approx([0.5 * 2 / 5, 1.0 * 6 / 10])


def test_arithmetic_takes_the_place_of_times_that_a_runtime_does_not_tell():
    first, second = _mixture(times=False).groups
    assert first.choices[1].time + second.choices[1].time == pytest.approx(1.0)
    assert second.choices[1].time > 0.4


def test_the_noise_of_the_scan_is_corrected_by_what_the_build_lost():
    mixture = _mixture()
    assert mixture.of(mixture.uniform(STATIC)).noise == pytest.approx(2e-3)
    assert mixture.groups[1].choices[0].noise == pytest.approx(1.4e-3)
    assert mixture.of(mixture.uniform(FP32)).noise == 0.0


def test_a_value_that_goes_from_group_to_group_costs_its_bytes_where_it_is_converted():
    mixture = _mixture()
    assert {(one.source, one.target) for one in mixture.borders} == {(0, 1)}
    assert mixture.of((0, 1)).borders == pytest.approx(2 * 40 * 1.25 * 1e-6 * 1e3 / 10.0)  # of gelu and of k
    assert mixture.of((0, 0)).borders == 0.0


def test_bytes_are_those_of_the_stored_weights_and_of_the_rest():
    mixture = _mixture()
    assert mixture.of(mixture.uniform(FP32)).bytes == 2000
    assert mixture.of(mixture.uniform(STATIC)).bytes == 400 + 1600 / 4


def test_what_a_target_refuses_is_no_choice_and_its_time_goes_with_what_it_reads():
    static, exact = _builds()
    refused = PricedBuild(STATIC, static.assigned | {"out": FP32}, 0.5, static.op_ms, noise=2e-3)
    mixture = _mixture(builds=[refused, exact])
    assert [group.op_ids for group in mixture.groups] == [("q", "k")]
    assert [choice.time for choice in mixture.groups[0].choices] == pytest.approx([0.5, 1.0])
