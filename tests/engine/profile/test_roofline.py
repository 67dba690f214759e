import msgspec
import pytest

from ace_studio.engine.profile.roofline import byte_rate, compute_rate, op_costs, summary, with_costs, within
from ace_studio.records.graph import GraphTable, OpKind
from ace_studio.records.results import Bound, Ceilings, OpReport

TABLE = GraphTable(
    op_id=("x", "conv", "relu", "view", "linear", "out"),
    kind=(OpKind.INPUT, OpKind.OP, OpKind.OP, OpKind.OP, OpKind.OP, OpKind.OUTPUT),
    op=("input", "aten.conv2d.default", "aten.relu.default", "aten.view.default", "aten.linear.default", "output"),
    module=("",) * 6,
    shape=("",) * 6,
    dtype=("float32",) * 6,
    device=("cpu",) * 6,
    file=(-1,) * 6,
    line=(0,) * 6,
    flops=(0, 8_000, 100, 0, 400, 0),
    weight_bytes=(0, 1_000, 0, 0, 40_000, 0),
    output_bytes=(200, 400, 400, 400, 40, 40),
    edge_source=(0, 1, 2, 3, 4),
    edge_target=(1, 2, 3, 4, 5),
)


CEILINGS = Ceilings(
    gflops={"fp32": 10.0, "int8-static": 40.0},
    gbytes_per_s=1.0,
    gbytes_per_s_at={1_000: 8.0, 10_000: 4.0},
    spread=0.0,
    threads=1,
    machine="m",
)


def report(op_id: str, *, actual: str = "fp32", fused_into: str = "", latency_ms: float | None = None) -> OpReport:
    op = TABLE.op[TABLE.op_id.index(op_id)]
    return OpReport(
        id=op_id, op=op, module="", shape="", device="cpu", planned=actual, actual=actual,
        fused_into=fused_into, latency_ms=latency_ms,
    )  # fmt: skip


def test_an_op_is_bound_by_what_takes_longer_and_shares_add_up():
    ops = [
        report("conv", latency_ms=0.003),
        report("relu", fused_into="conv", actual="fused"),
        report("view"),
        report("linear", latency_ms=0.1),
    ]
    conv, relu, view, linear = with_costs(ops, TABLE, CEILINGS)
    assert conv.bound is Bound.COMPUTE
    assert conv.ceiling_share == pytest.approx(8_100 / 10e6 / 0.003, rel=1e-3)
    assert linear.bound is Bound.MEMORY
    assert linear.ceiling_share == pytest.approx(40_440 / 1e6 / 0.1, rel=1e-3)
    assert conv.share + linear.share == pytest.approx(1.0, abs=1e-5)
    assert relu.flops is view.share is None


def test_small_values_move_at_the_speed_of_the_caches():
    assert byte_rate(900, CEILINGS) == 8.0
    assert byte_rate(1_001, CEILINGS) == 4.0
    assert byte_rate(1_000_000, CEILINGS) == 1.0


def test_without_ceilings_nothing_is_said_of_bounds():
    (op,) = with_costs([report("linear", latency_ms=1.0)], TABLE, None)
    assert op.flops == 400
    assert op.bound is op.ceiling_share is None


def test_what_the_ops_do_not_explain_is_said():
    found = summary([report("conv", latency_ms=1.0), report("linear", latency_ms=2.0)], latency_ms=3.5, source="s")
    assert (found.ops_ms, found.uncovered_ms, found.timed_ops) == (3.0, 0.5, 2)
    assert summary([report("conv")], latency_ms=1.0, source="s") is None


def test_ops_never_take_longer_than_the_whole():
    ops = [report("conv", latency_ms=1.0), report("linear", latency_ms=3.0), report("relu")]
    assert [op.latency_ms for op in within(ops, 2.0)] == [0.5, 1.5, None]
    assert within(ops, 4.5) == tuple(ops)
    assert summary(within(ops, 2.0), latency_ms=2.0, source="s").uncovered_ms == 0.0


def test_a_machine_that_was_too_busy_to_be_measured_bounds_nothing_and_stops_nothing():
    unknown = msgspec.structs.replace(CEILINGS, gflops={})
    assert compute_rate("int8-static", unknown) == 0.0
    assert compute_rate("bf16", CEILINGS) == 10.0
    (timed,) = with_costs([report("conv", latency_ms=1.0)], TABLE, unknown)
    assert (timed.flops, timed.bound, timed.ceiling_share) == (8_000, None, None)


def test_an_op_moves_its_weights_its_inputs_and_its_result():
    costs = op_costs(TABLE, fused_into={}, actual={})
    assert (costs["conv"].flops, costs["conv"].bytes) == (8_000, 200 + 1_000 + 400)
    assert costs["relu"].bytes == 800
    assert costs["view"].bytes == 0
    assert costs["linear"].bytes == 400 + 40_000 + 40


def test_a_value_inside_of_a_fused_group_is_not_moved():
    costs = op_costs(TABLE, fused_into={"relu": "conv"}, actual={})
    assert set(costs) == {"conv", "view", "linear"}
    assert costs["conv"].flops == 8_100
    assert costs["conv"].bytes == 200 + 1_000 + 400


def test_a_chain_of_fusions_has_one_home():
    costs = op_costs(TABLE, fused_into={"view": "relu", "relu": "conv"}, actual={})
    assert set(costs) == {"conv", "linear"}


@pytest.mark.parametrize(
    ("actual", "moved"),
    [
        ("int8-static", (400 + 40_000 + 40) / 4),
        ("int8-weight", 400 + 10_000 + 40),
        ("int4-weight", 400 + 5_000 + 40),
        ("bf16", (400 + 40_000 + 40) / 2),
        ("fused", 400 + 40_000 + 40),
    ],
)
def test_bytes_are_those_of_the_precision_that_the_op_runs_at(actual, moved):
    assert op_costs(TABLE, fused_into={}, actual={"linear": actual})["linear"].bytes == moved


def test_a_lookup_reads_what_it_gives_and_not_the_whole_table():
    table = GraphTable(**{
        **{name: getattr(TABLE, name) for name in TABLE.__struct_fields__},
        "op": (*TABLE.op[:4], "aten.embedding.default", "output"),
    })  # fmt: skip
    assert op_costs(table, fused_into={}, actual={})["linear"].bytes == 400 + 40 + 40
