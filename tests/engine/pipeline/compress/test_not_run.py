"""A target whose artifacts cannot be run on this machine: they are saved, and no figure is made up."""

import json

import pytest
import torch
from torch import nn

import ace_studio
from ace_studio.engine.targets.torch.eager import EagerLowered, EagerTarget
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.results import RunStatus
from ace_studio.records.targets import TARGET_ROWS, TargetRow

WHY = "it runs on the moon only"


class MoonLowered(EagerLowered):
    """Refuses to run."""

    def __call__(self, *args, **kwargs):
        raise AssertionError("nothing may call it")


class MoonTarget(EagerTarget):
    """Writes what eager writes."""

    def run_problem(self):
        return WHY

    def build(self, job):
        lowered = super().build(job)
        lowered.__class__ = MoonLowered
        return lowered


ROW = TargetRow(name="moon", label="Moon", implementation=f"{__name__}:MoonTarget", is_soon_built=True)


@pytest.fixture
def compiled(monkeypatch, tmp_path):
    monkeypatch.setitem(TARGET_ROWS, "moon", ROW)

    def run(*targets, model=None, **choices):
        return ace_studio.compile(
            model or nn.Linear(4, 2).eval(), tracing_inputs=[torch.ones(2, 4)], target=targets, rounds=3, out=tmp_path,
            **choices,
        )  # fmt: skip

    return run


def test_it_is_saved_but_neither_compared_nor_timed_nor_chosen_and_the_result_says_why(compiled):
    result = compiled("moon", "eager", default="fp32", batches=[1, 2])
    run, other = result.report.runs
    assert run.status is RunStatus.OK and run.not_run == WHY and not run.verified
    assert (run.latency_ms, run.speedup, run.sqnr_db, run.metric, run.throughput) == (None, None, None, None, ())
    assert run.size_bytes and run.ops and (result.folder / run.artifact).is_file()
    assert other.verified and other.latency_ms and not other.not_run
    assert result.report.chosen == 1 and [point.run for point in result.report.pareto] == [1]
    stored = json.loads((result.folder / "result.json").read_text(encoding="utf-8"))
    assert [one["not_run"] for one in stored["runs"]] == [WHY, ""]
    page = (result.folder / "report.html").read_text(encoding="utf-8")
    assert f"saved, but not run, compared or timed: {WHY}" in page and run.artifact in page
    assert WHY in (result.folder / "comparison.svg").read_text(encoding="utf-8")


def test_alone_it_is_no_success(compiled):
    result = compiled("moon", default="fp32", profile=False)
    with pytest.raises(AceError) as caught:
        result.module  # noqa: B018 - it raises
    assert caught.value.problem.code is ErrorCode.UNSUPPORTED and WHY in caught.value.problem.why
    assert "in the folder" in caught.value.problem.remedy


@pytest.mark.slow
def test_a_search_for_a_goal_leaves_it_out(compiled):
    result = compiled("moon", "eager", min_sqnr_db=60.0, profile=False)
    (run,) = [one for one in result.report.runs if one.target == "moon"]
    assert run.status is RunStatus.UNAVAILABLE and run.error.why == WHY and "[plan]" in run.error.remedy
    assert result.report.runs[result.report.chosen].target == "eager"


class Breaking(nn.Module):
    """Python decides by a value, so that it is captured in subgraphs."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        y = self.one(x)
        return self.two(y) if float(y.sum()) > 0 else y


def test_a_model_in_subgraphs_is_refused_because_python_runs_them(compiled):
    result = compiled("moon", "eager", model=Breaking().eval(), default="fp32", rungs=["partial"], profile=False)
    run = result.report.runs[0]
    assert run.status is RunStatus.FAILED and run.error.why == WHY and "whole graphs" in run.error.what
