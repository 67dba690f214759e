"""The figures of a run are on disk before its artifacts, whatever happens to these, and name its worst examples."""

import os

import pytest
import torch
from torch import nn

import ace_studio
from ace_studio.engine import measure
from ace_studio.engine.flow import LoadedModel
from ace_studio.engine.pipeline.compress import profiling, stages
from ace_studio.engine.targets import select_targets
from ace_studio.records.recipes.recipe import MeasureChoice, Recipe, TargetsChoice
from ace_studio.records.results import RESULT_NAME, ResultStatus, RunStatus, decode_result
from tests.engine.captured import job_of
from tests.engine.pipeline.compress.small_net import net, points

torch.set_num_threads(1)

RECIPE = Recipe(targets=TargetsChoice(names=("eager",)), measure=MeasureChoice(rounds=3, profile=False))


@pytest.fixture
def job(tmp_path):
    torch.manual_seed(0)
    loaded = LoadedModel(module=nn.Linear(4, 4).eval(), source=tmp_path, sha256="")
    with torch.no_grad():
        yield job_of(loaded, torch.randn(2, 4), recipe=RECIPE, output=tmp_path)


def test_a_process_that_dies_while_it_exports_leaves_the_figures(job, tmp_path, monkeypatch):
    monkeypatch.setattr(stages, "export_all", lambda _: os._exit(9))
    if (child := os.fork()) == 0:
        stages.run_stages(job)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    result = decode_result((tmp_path / RESULT_NAME).read_bytes())
    assert (result.status, result.chosen) == (ResultStatus.FAILED, None)
    assert result.error is not None and "not come to its end" in result.error.what
    (run,) = result.runs
    assert run.latency_ms and run.speedup and result.baseline.latency_ms and not run.verified


def test_a_disk_that_is_too_full_for_the_figures_does_not_end_the_run(job, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(stages, "write_figures", full)
    assert stages.run_stages(job).result.status is ResultStatus.OK


def test_more_threads_than_cores_become_all_cores(monkeypatch) -> None:
    monkeypatch.setattr(stages.torch, "set_num_threads", lambda _: None)
    report = ace_studio.compile(
        net(), tracing_inputs=[(points(2, 1),)], target="eager", default="fp32", threads=99_999, rounds=1, profile=False
    ).report
    assert report.environment["threads"] == measure.resolve_threads("all")
    assert "fewer-cores" in [one.code for one in report.warnings]


def test_calibration_examples_stand_in_where_there_are_no_labels() -> None:
    report = ace_studio.compile(
        net(),
        tracing_inputs=[points(2, 1), points(3, 2)],
        calibration_inputs=[points(4, seed) for seed in range(8)],
        target="eager",
        default="bf16",
        rounds=2,
    ).report
    assert {one.source for one in report.worst} == {"calibration"}
    assert len(report.worst) == 5
    assert [one.sqnr_db for one in report.worst] == sorted(one.sqnr_db for one in report.worst)
    assert report.worst[0].run == 0


class Product(nn.Module):
    """A product of which Inductor has no 8-bit form, written as traces of torch write a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.addmm(self.weight[0], x, self.weight)


def test_auto_says_which_target_it_leaves_out_for_what_the_model_holds(monkeypatch) -> None:
    monkeypatch.setattr(stages, "select_targets", lambda _: select_targets(("inductor", "onnxruntime")))
    report = ace_studio.compile(
        Product().eval(),
        tracing_inputs=[points(2, 1), points(3, 2)],
        calibration_inputs=[points(4, seed) for seed in range(4)],
        default="int8-static",
        rounds=2,
        profile=False,
    ).report
    assert [run.target for run in report.runs] == ["onnxruntime"]
    said = [one.what for one in report.warnings if one.code == "target-left-out"]
    assert said == ["auto does not use PyTorch Inductor: no op of this model can run at int8-static here"]


def test_evaluation_samples_are_named_with_their_label() -> None:
    x = points(60, 3)
    with torch.no_grad():
        labels = net()(x).argmax(1)
    report = ace_studio.compile(
        net(),
        tracing_inputs=[points(2, 1), points(3, 2)],
        metric="top-1",
        evaluation_data=[(x, labels)],
        target="eager",
        default="bf16",
        rounds=2,
    ).report
    assert {one.source for one in report.worst} == {"evaluation"}
    assert report.worst[0].label == str(int(labels[report.worst[0].sample]))


@pytest.mark.parametrize(("module", "name"), [(stages, "worst_of_outputs"), (profiling, "_profile_run")])
def test_a_figure_that_cannot_be_found_leaves_a_run_that_works(monkeypatch, module, name) -> None:
    def refuse(*_, **__):
        raise RuntimeError("the size is not taken")

    monkeypatch.setattr(module, name, refuse)
    report = ace_studio.compile(
        net(), tracing_inputs=[points(2, 1), points(3, 2)], target="eager", default="bf16", rounds=2
    ).report
    assert report.runs[0].status is RunStatus.OK
    assert "the size is not taken" in next(one.what for one in report.warnings if one.code == "figure-missing")


def test_calibration_examples_that_the_graph_does_not_take_are_not_compared() -> None:
    report = ace_studio.compile(
        nn.Sequential(nn.Conv1d(8, 4, 3), nn.AdaptiveAvgPool1d(1), nn.Flatten()).eval(),
        tracing_inputs=[torch.randn(1, 8, 8)],
        calibration_inputs=[torch.randn(1, 8, 9, generator=torch.Generator().manual_seed(i)) for i in range(3)],
        target="eager",
        default="bf16",
        rounds=2,
    ).report
    assert report.runs[0].status is RunStatus.OK
    assert not report.worst
    assert "figure-missing" not in {one.code for one in report.warnings}
