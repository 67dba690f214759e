"""The columns of the comparison of targets."""

from __future__ import annotations

from msgspec.structs import replace

from ace_studio.gui.panels.results.columns import plan_words
from ace_studio.records.results import SearchStep
from tests.gui.run_results import TABLE, run_of


def test_a_plan_is_told_from_another_by_the_ops_that_it_keeps_and_by_better_weights():
    run = run_of(TABLE)
    assert plan_words(run, None) == "int8-static"
    kept = replace(run.ops[0], planned="fp32")
    step = SearchStep(target="t", low="int8-static", improved=("smoothquant",))
    assert plan_words(replace(run, ops=(kept, *run.ops[1:])), step) == "int8-static, 1 op at fp32, smoothquant"
