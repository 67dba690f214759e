"""What one op gives for one example, in float and under the plan, asked of a model in a file."""

import numpy as np
import pytest

from ace_studio.engine import pipeline
from ace_studio.engine.progress import Reporter
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.messages import ModelCaptured, Phase, Progress, TraceRequest, ValuesFound, ValuesRequest
from ace_studio.records.recipes.file import read_recipe

SOURCE = """
import torch
from torch import nn

class Small(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv = nn.Conv2d(3, 8, 3)
        self.norm = nn.BatchNorm2d(8)
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        y = torch.relu_(self.norm(self.conv(x)))
        return self.head(y.mean((2, 3)))

def tracing_inputs():
    torch.manual_seed(1)
    return [(torch.randn(1, 3, 9, 9),), (torch.randn(2, 3, 9, 9),)]
"""
RECIPE = """format = 1
[model]
source = "model.py"
entry = "Small"
[inputs]
tracing = "tracing_inputs"
[capture]
cache = false
[targets]
names = ["eager"]
[plan]
default = "{}"
"""


@pytest.fixture(autouse=True)
def folder(tmp_path):
    (tmp_path / "model.py").write_text(SOURCE)
    yield tmp_path
    pipeline._last_model.forget()


def ask(folder, op_id, *, precision="int8-static", **more):
    (folder / "recipe.toml").write_text(RECIPE.format(precision))
    events = []
    request = ValuesRequest(
        job="v", recipe=read_recipe(folder / "recipe.toml"), folder=str(folder), trust_all=True, op_id=op_id, **more
    )
    pipeline.values(request, Reporter(events.append, job="v"))
    assert isinstance(events[-1], ValuesFound) and not any(isinstance(one, ModelCaptured) for one in events)
    return events[-1].values, [one.phase for one in events if isinstance(one, Progress)]


def test_result_and_weight_are_shown_in_float_and_as_the_plan_computes_them(folder):
    found, _ = ask(folder, "linear")
    result, weight, bias = found.tensors
    assert (result.name, result.shape, weight.shape) == ("result", (1, 4), (4, 8)) and found.precision == "int8-static"
    assert 20 < result.sqnr_db < 60 and 30 < weight.sqnr_db < 60 and bias.compressed is None
    assert weight.compressed.first != weight.original.first and len(weight.channels) == 4
    assert len(result.pictures) == 3 and any("simulation" in note for note in found.notes)


def test_another_example_is_the_users_second_one(folder):
    assert ask(folder, "linear", example=1)[0].tensors[0].shape == (2, 4)


def test_a_target_that_the_recipe_does_not_name_rounds_as_that_target_does(folder):
    own, asked = (ask(folder, "linear", target=name)[0].tensors[0] for name in ("eager", "onnxruntime"))
    assert own.compressed.first != asked.compressed.first


def test_a_float_plan_compresses_nothing_and_says_nothing_of_it(folder):
    found, _ = ask(folder, "linear", precision="fp32")
    assert all(one.compressed is None and len(one.pictures) == 1 for one in found.tensors) and found.notes == ()


def test_what_a_run_decided_goes_before_the_plan(folder):
    assigned = dict.fromkeys(("conv2d", "batch_norm", "relu_", "mean", "linear"), "fp32")
    assert ask(folder, "linear", assigned=assigned)[0].tensors[0].compressed is None


def test_a_norm_that_is_folded_has_the_values_of_both_and_says_so(folder):
    norm, _ = ask(folder, "batch_norm")
    convolution, _ = ask(folder, "conv2d")
    assert [one.name for one in norm.tensors] == ["result", "conv.weight, folded", "conv.bias, folded"]
    assert norm.tensors == convolution.tensors and any("folded" in note for note in norm.notes)


def test_inputs_and_outputs_of_the_model_have_values_too(folder):
    assert ask(folder, "x")[0].tensors[0].shape == (1, 3, 9, 9)
    assert ask(folder, "output")[0].tensors[0].shape == (1, 4)


def test_the_next_question_needs_no_loading_until_files_change_or_another_job_comes(folder):
    first, phases = ask(folder, "conv2d")
    assert {Phase.LOAD, Phase.CAPTURE, Phase.CALIBRATE} <= set(phases)
    assert ask(folder, "linear")[1] == [Phase.VALUES]
    request = TraceRequest(job="t", recipe=read_recipe(folder / "recipe.toml"), folder=str(folder), trust_all=True)
    pipeline.trace(request, Reporter())
    assert pipeline._last_model._model is None
    assert Phase.LOAD in ask(folder, "conv2d")[1]
    (folder / "model.py").write_text(SOURCE.replace("manual_seed(0)", "manual_seed(2)"))
    changed, phases = ask(folder, "conv2d")
    assert Phase.LOAD in phases and changed.tensors != first.tensors


def test_whole_tensors_are_saved_on_request(folder):
    ask(folder, "linear", save=str(folder / "linear.npz"))
    with np.load(folder / "linear.npz") as saved:
        assert saved["result float"].shape == (1, 4) and not np.array_equal(saved["head.weight float"], 0)
        assert np.abs(saved["result float"] - saved["result compressed"]).max() > 0
    with pytest.raises(AceError) as caught:
        ask(folder, "linear", save=str(folder / "no" / "such.npz"))
    assert caught.value.problem.code is ErrorCode.NOT_FOUND


def test_an_op_that_is_not_in_the_graph_is_refused(folder):
    with pytest.raises(AceError) as caught:
        ask(folder, "conv2d_7")
    assert caught.value.problem.code is ErrorCode.NOT_FOUND and "conv2d_7" in caught.value.problem.what
