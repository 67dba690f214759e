from __future__ import annotations

import pytest

from ace_studio.engine.profile.moved import op_costs
from ace_studio.records.graph import GraphTable
from tests.engine.profile.one_table import TABLE


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
