"""The roofline."""

from __future__ import annotations

import pytest

from tests.gui.charting import open_chart
from tests.gui.run_results import TABLE


def test_the_roofline_places_an_op_by_its_operations_bytes_and_time(desk, charts):
    view = open_chart(desk, charts, "roofline")
    op, intensity, gflops = next(one for one in view.placed if one[0].id == "linear_0")
    row = TABLE.op_id.index("linear_0")
    assert intensity == pytest.approx(1000 * row / 4096)
    assert gflops == pytest.approx(1000 * row / op.latency_ms / 1e6)
