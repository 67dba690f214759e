from __future__ import annotations

import pytest
from torch import nn

from ace_studio.engine.quantize.simulate import PAIRS, READS, RESULTS
from ace_studio.engine.sensitivity.scan import BUDGET
from ace_studio.records.recipes.plan import Precision
from tests.engine.sensitivity.scans import captured_of, random_values, scan_of, spearman


def test_a_model_without_products_has_nothing_to_scan(tmp_path):
    class Doubler(nn.Module):
        def forward(self, x):
            return x * 2

    captured = captured_of(Doubler(), (random_values(2, 8),), (random_values(5, 8),), tmp_path=tmp_path)
    assert scan_of(captured, [[random_values(2, 8)]]).run() == {Precision.INT8_STATIC: {}, Precision.INT8_DYNAMIC: {}}


@pytest.mark.parametrize("style", [READS, PAIRS, RESULTS], ids=lambda style: style.name)
def test_ops_that_follow_have_a_figure_where_the_runtime_rounds_there(mixed, style):
    captured, samples = mixed
    scan = scan_of(captured, samples, style=style, precisions=(Precision.INT8_STATIC,))
    noise = scan.run()[Precision.INT8_STATIC]
    names = dict(zip(captured.table.op_id, captured.table.op, strict=True))
    following = {names[op_id].split(".")[1] for op_id in noise if scan.watched[op_id].follows}
    assert "add" in following
    assert ("cat" in following) is (style is PAIRS)
    assert not following & {"relu", "flatten"}  # rounded by the op in front, or not at all
    assert all(noise[op_id] > 0.0 for op_id in noise)
    assert scan.saved.forwards <= BUDGET
    true = [scan.alone(op_id, Precision.INT8_STATIC) for op_id in noise]
    assert spearman(list(noise.values()), true) >= 0.9


def test_ops_that_follow_have_no_figure_at_other_precisions(mixed):
    captured, samples = mixed
    noise = scan_of(captured, samples[:1], style=PAIRS).run()
    assert set(noise[Precision.INT8_DYNAMIC]) < set(noise[Precision.INT8_STATIC])
    assert len(noise[Precision.INT8_DYNAMIC]) == 11
