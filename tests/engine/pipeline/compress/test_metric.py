"""A built-in metric in a job: from pairs, from a file that the recipe names, with its intervals, and refused."""

from pathlib import Path

import numpy as np
import pytest
import torch

import ace_studio
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.results import RunStatus
from ace_studio.records.results.words import drop_words, metric_words
from tests.engine.pipeline.compress.small_net import net

torch.set_num_threads(1)


def examples() -> list[torch.Tensor]:
    return [torch.randn(n, 8, generator=torch.Generator().manual_seed(n)) for n in (2, 5)]


def labelled(n: int = 90) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.randn(n, 8, generator=torch.Generator().manual_seed(9))
    with torch.no_grad():
        labels = net()(x).argmax(1)
    labels[:9] = (labels[:9] + 1) % 3
    return x, labels


QUICK = {"rounds": 2, "target": "eager", "default": "bf16"}


@pytest.mark.slow
def test_a_metric_on_a_file_is_that_on_the_same_pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x, labels = labelled()
    np.savez(tmp_path / "held_out.npz", x=x.numpy(), labels=labels.numpy())
    monkeypatch.chdir(tmp_path)
    found = [
        ace_studio.compile(net(), tracing_inputs=examples(), metric="top-1", evaluation_data=data, **QUICK).report
        for data in ("held_out.npz", [(x, labels)])
    ]
    assert found[0].baseline.metric == found[1].baseline.metric == pytest.approx(0.9)
    assert found[0].baseline.samples == 90
    for report in found:
        (run,) = report.runs
        assert run.status is RunStatus.OK, run.error
        assert run.metric_low < run.metric < run.metric_high
        assert run.drop_low <= run.metric_drop <= run.drop_high
    assert " - " in metric_words(found[0].baseline)
    assert drop_words(found[0].runs[0]).startswith("no difference seen")


def test_your_own_evaluation_may_give_the_scores_of_all_samples() -> None:
    x, labels = labelled()

    def evaluate(predict):
        return (predict(x).argmax(1) == labels).float()

    report = ace_studio.compile(net(), tracing_inputs=examples(), evaluate=evaluate, **QUICK).report
    assert report.baseline.metric == pytest.approx(0.9)
    assert report.baseline.samples == 90
    assert report.runs[0].drop_high is not None


def test_a_metric_of_zero_bounds_nothing_and_that_is_said() -> None:
    report = ace_studio.compile(
        net(), tracing_inputs=examples(), evaluate=lambda predict: 0.0, max_drop=0.01, **QUICK
    ).report
    assert [one.code for one in report.warnings].count("metric-of-zero") == 1


def test_an_error_is_better_when_it_is_smaller_without_being_told() -> None:
    x, _ = labelled(20)
    pairs = [(x, torch.zeros(20, 3))]
    report = ace_studio.compile(
        net(), tracing_inputs=examples(), metric="mse", evaluation_data=pairs, max_drop=0.5, **QUICK
    ).report
    run = report.runs[0]
    assert run.metric_drop == pytest.approx((run.metric - report.baseline.metric) / report.baseline.metric)


def test_a_metric_without_data_and_two_metrics_at_once_are_refused() -> None:
    for keywords in ({"metric": "top-1"}, {"metric": "top-1", "evaluation_data": [1], "evaluate": lambda _: 1.0}):
        with pytest.raises(AceError) as caught:
            ace_studio.compile(net(), tracing_inputs=examples(), **QUICK, **keywords)
        assert caught.value.problem.code is ErrorCode.USAGE


@pytest.mark.parametrize("metric", [None, lambda predict: float(predict("a word").sum())])
def test_examples_without_a_tensor_are_told_by_what_the_model_raises_of_them(metric, tmp_path):
    with pytest.raises(AceError, match=r"cannot take example 1 \(input .a word.\)"):
        ace_studio.compile(torch.nn.Linear(4, 2), tracing_inputs=["a word"], evaluate=metric, out=tmp_path)
