from ace_studio.gui.panels.sweep.panel import sweep_columns
from ace_studio.gui.style.theme import THEMES
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.sweeps import RowStatus, SweepRow
from tests.session.fake_sweep_link import sweep_row


def test_rows_have_a_column_per_axis_and_a_failed_one_says_why():
    problem = Problem(code=ErrorCode.CRASH, what="No graph", why="it branches", remedy="mend it")
    failed = SweepRow(job="2", recipe="b.toml", axes={"plan": "bf16"}, status=RowStatus.FAILED, error=problem)
    columns = {one.title: one for one in sweep_columns((sweep_row(1, 2.0), failed), THEMES["dark"])}
    assert list(columns)[:4] == ["job", "recipe", "threads", "plan"]
    assert list(columns["outcome"].values) == ["eager fp32", "failed: No graph"]
    assert columns["outcome"].tips(1) == "No graph\nit branches\nmend it"
    assert columns["threads"].values == [1, ""]
    assert columns["latency, ms"].text(None) == "–"
