"""SmoothQuant of the library: for norms that a residual reads too, kept only if it helps, and told."""

import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxscript")
pytest.importorskip("openvino")
pytest.importorskip("nncf")

import torch
from torch import nn

from ace_studio.engine.targets import TARGETS
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.recipes.recipe import ImproveMethod
from tests.engine.targets.onnx_cases import capture, job_for, sqnr_db
from tests.tiny_models import TinyModel, conv_net

TARGET = TARGETS["openvino"]


class PostNorm(nn.Module):
    """A norm that a linear layer and the residual around it read, with outlier channels."""

    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(64), nn.Linear(64, 128), nn.Linear(128, 64)
        self.last, self.head = nn.LayerNorm(64), nn.Linear(64, 16)
        with torch.no_grad():
            self.norm.weight[5], self.norm.weight[40] = 90.0, 60.0
            self.up.weight[:, 5] /= 90.0
            self.up.weight[:, 40] /= 60.0

    def forward(self, x):
        y = self.norm(x)
        return self.head(self.last(self.down(torch.relu(self.up(y))) + y / 50))


def _job(count):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = PostNorm().eval()
    generator = torch.Generator().manual_seed(1)
    examples = [(torch.randn(8 + index, 64, generator=generator),) for index in range(count)]
    job = job_for(TARGET, capture(TinyModel(module, examples)), Precision.INT8_STATIC)
    job.library_methods = frozenset({ImproveMethod.SMOOTHQUANT})
    return job


def test_it_is_tried_beside_the_plain_model_and_what_is_built_is_the_better():
    job = _job(6)
    lowered = TARGET.lower(job)
    (report,) = job.improvements
    assert report.method == "smoothquant"
    assert "OpenVINO only" in report.reason
    assert report.kept == (report.after_db >= report.before_db + 0.05)
    assert report.kept
    captured = job.captured
    fidelity = min(sqnr_db(one.call(captured.module), one.call(lowered)) for one in captured.examples)
    assert fidelity > report.before_db


def test_nothing_is_tried_where_nobody_asked():
    job = _job(3)
    job.library_methods = frozenset()
    TARGET.lower(job)
    assert job.improvements == []


def test_convolutions_are_not_smoothed_because_the_sums_beside_them_would_stay_float():
    job = job_for(TARGET, capture(conv_net()), Precision.INT8_STATIC)
    job.library_methods = frozenset({ImproveMethod.SMOOTHQUANT})
    TARGET.lower(job)
    (report,) = job.improvements
    assert not report.kept
    assert report.before_db is None  # nothing was built to find that out
    assert "convolutions" in report.reason


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix, self.out = nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, x):
        query, key, value = self.mix(x).chunk(3, -1)
        return self.out(torch.softmax(query @ key.transpose(1, 2), -1) @ value)


@pytest.mark.parametrize(("count", "tries"), [(4, 1), (2, 0)])
def test_it_is_tried_unasked_where_there_is_attention_and_enough_to_judge_it_by(count, tries):
    generator = torch.Generator().manual_seed(1)
    examples = [(torch.randn(2, 6 + index, 16, generator=generator),) for index in range(count)]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = Attention().eval()
    job = job_for(TARGET, capture(TinyModel(module, examples)), Precision.INT8_STATIC)
    TARGET.lower(job)
    assert len(job.improvements) == tries
