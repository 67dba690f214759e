"""A model in LiteRT's interpreter refuses what it was not proven for, and goes on afterwards."""

import pytest
import torch
from torch import nn

from ace_studio.engine.targets import TARGETS
from ace_studio.engine.targets.litert.model_file import with_limits
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.tensors import SizeLimit
from tests.engine.targets.conftest import captured_model
from tests.engine.targets.onnx_cases import capture, job_for
from tests.tiny_models import TinyModel

TARGET = TARGETS["litert"]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not TARGET.available().ok, reason=TARGET.available().reason),
]


def test_a_size_that_the_graph_holds_fixed_is_refused_with_what_to_do(lower):
    lowered = lower("litert", Precision.FP32, "mlp")
    assert lowered(torch.zeros(7, 16)).shape == (7, 4)
    with pytest.raises(AceError) as caught:
        lowered(torch.zeros(7, 15))
    assert caught.value.problem.code is ErrorCode.BAD_INPUT
    assert caught.value.problem.why and "dynamic" in caught.value.problem.remedy
    assert lowered(torch.zeros(3, 16)).shape == (3, 4)


def test_the_file_refuses_sizes_beyond_the_range_that_it_was_proven_at(lower, tmp_path):
    path = lower("litert", Precision.FP32, "mlp").save(tmp_path)
    limit = SizeLimit(leaf=0, dim=0, name="x.0", low=3, high=50)
    path.write_bytes(with_limits(path.read_bytes(), [limit]))
    run = TARGET.load(path, threads=1)
    assert run(torch.zeros(50, 16))[0].shape == (50, 4)
    for count in (2, 51):
        with pytest.raises(AceError, match=f"x.0 must be 3 to 50, and it is {count}"):
            run(torch.zeros(count, 16))


class Total(nn.Module):
    """x [n, 4] -> the sum of all as a tensor without dimensions, and whether it is positive."""

    def forward(self, x):
        total = x.sum()
        return total, total > 0


def test_a_result_without_dimensions_is_a_tensor_too():
    captured = capture(TinyModel(Total().eval(), ((torch.ones(2, 4),), (torch.ones(3, 4),))))
    lowered = TARGET.lower(job_for(TARGET, captured, Precision.FP32))
    total, is_positive = lowered(torch.full((5, 4), 2.0))
    assert (total.shape, total.dtype, float(total)) == ((), torch.float32, 40.0)
    assert (is_positive.shape, is_positive.dtype, bool(is_positive)) == ((), torch.bool, True)


def test_bare_calls_give_what_calls_give(lower):
    captured = captured_model("mlp")
    lowered = lower("litert", Precision.INT8_STATIC, "mlp")
    (bare,) = lowered.bare(captured.example)()
    assert torch.equal(torch.from_numpy(bare), captured.example.call(lowered))
