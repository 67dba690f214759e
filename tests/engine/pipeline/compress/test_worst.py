"""The worst examples of a run, found in a whole job."""

from __future__ import annotations

import torch
from torch import nn

import ace_studio

torch.set_num_threads(1)


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)).eval()


def points(n: int, seed: int, scale: float = 1.0) -> torch.Tensor:
    return torch.randn(n, 8, generator=torch.Generator().manual_seed(seed)) * scale


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
