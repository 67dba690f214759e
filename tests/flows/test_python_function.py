"""`ace_studio.compile` on a live module: examples in, a drop-in module, a report and artifacts out."""

from functools import cache

import pytest
import torch
from torch import nn

import ace_studio
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.plan import PlanRule, Precision
from ace_studio.records.recipes.recipe import CaptureChoice, ScanChoice, SensitivityChoice
from ace_studio.records.results import ResultStatus


def make_net():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4)).eval()


def points(n, seed):
    return torch.randn(n, 8, generator=torch.Generator().manual_seed(seed))


def agreement(net):
    x = points(256, 99)
    labels = net(x).argmax(1)
    return lambda predict: float((predict(x).argmax(1) == labels).float().mean())


QUICK = {"rounds": 3, "target": "onnxruntime"}


@cache
def compiled(target):
    """The net at fp32, for tests that only look at the result."""
    return ace_studio.compile(
        make_net(), tracing_inputs=[points(2, 1)], default="fp32", rounds=1, profile=False, target=target
    )


def test_the_result_is_a_drop_in_module_a_report_and_a_file(tmp_path):
    net = make_net()
    result = ace_studio.compile(
        net,
        tracing_inputs=[points(2, 1), points(5, 2)],
        calibration_inputs=[points(16, seed) for seed in range(4)],
        evaluate=agreement(net),
        default="int8-static",
        max_drop=0.1,
        out=tmp_path,
        **QUICK,
    )
    assert result.report.status is ResultStatus.OK
    assert result.report.goal_met
    x = points(7, 3)
    assert isinstance(result.module, nn.Module)
    assert (result.module(x) - net(x)).abs().max() < 0.2
    chosen = result.report.runs[result.report.chosen]
    assert {op.actual for op in chosen.ops if "linear" in op.op} == {"int8-static"}
    path = result.export(tmp_path / "copy" / "model.onnx")
    assert path.read_bytes() == (tmp_path / chosen.artifact).read_bytes()


def test_the_report_says_how_long_it_took_and_in_which_phases():
    report = compiled("eager").report
    assert {"capture", "measure"} <= set(report.phase_seconds)
    assert report.seconds == pytest.approx(sum(report.phase_seconds.values()))


@pytest.mark.parametrize("target", ["onnxruntime", "eager"])
def test_the_module_keeps_nothing_for_gradients_whatever_its_inputs_ask_for(target):
    given = points(2, 1).requires_grad_()
    assert torch.is_grad_enabled()
    assert not compiled(target).module(given).requires_grad


def test_calibration_inputs_serve_for_tracing_too():
    result = ace_studio.compile(make_net(), calibration_inputs=[points(2, 1), points(6, 2)], default="fp32", **QUICK)
    (found,) = result.report.capture.inputs
    assert found.dims[0].verdict == "dynamic"
    assert result.report.goal_met is None


def test_a_goal_without_a_plan_chooses_the_precision_itself():
    net = make_net()
    result = ace_studio.compile(
        net, tracing_inputs=[points(2, 1), points(5, 2)], evaluate=agreement(net), max_drop=0.1, **QUICK
    )
    tried = [run.precision for run in result.report.runs]
    assert tried[0] == "int8-static"
    assert result.report.goal_met


def test_batches_of_a_generator_are_there_for_everyone_who_asks(monkeypatch):
    monkeypatch.setattr("ace_studio.api._compiled", lambda loaded, *_: loaded.data.calibration)
    batches = [points(2, 1), points(5, 2)]
    given = ace_studio.compile(make_net(), tracing_inputs=batches, calibration_inputs=iter(batches))
    assert [list(given()), list(given())] == [batches, batches]


def test_every_keyword_reaches_the_recipe(monkeypatch):
    monkeypatch.setattr("ace_studio.api._compiled", lambda _loaded, recipe, *_: recipe)
    recipe = ace_studio.compile(
        make_net(),
        tracing_inputs=[points(2, 1)],
        time_limit_s=60,
        compare_rungs=True,
        batch_only=True,
        rules=[("op:*", "fp32"), {"match": "id:linear", "precision": "int8-weight", "group_size": 64}],
        sensitivity={"scan": "off", "probes": 2},
        sizes={"input.0": (1, 2, 8)},
    )
    assert recipe.capture == CaptureChoice(time_limit_s=60.0, compare_rungs=True, batch_only=True)
    first, second = recipe.plan.rules
    assert first == PlanRule(match="op:*", precision=Precision.FP32)
    assert second == PlanRule(match="id:linear", precision=Precision.INT8_WEIGHT, group_size=64)
    assert recipe.sensitivity == SensitivityChoice(scan=ScanChoice.OFF, probes=2)
    assert recipe.targets.sizes == {"input.0": (1, 2, 8)}


def test_grids_hold_where_the_goal_chooses_the_precisions_too():
    net = make_net()
    with torch.no_grad():
        net[0].weight[3] *= 30.0  # the step of a grid for all channels is that of this one

    def fidelity(**keywords):
        given = {"tracing_inputs": [points(2, 1), points(5, 2)], "min_sqnr_db": 5.0, "profile": False, **QUICK}
        steps = ace_studio.compile(net, **given, **keywords).report.search
        return next(one.sqnr_db for one in steps if one.low == "int8-static" and not one.kept_high)

    assert fidelity(weights="per-tensor") < fidelity() - 3.0


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"default": "int9"}, "int9"),
        ({"weights": "per-row", "max_size_mb": 1.0}, "per-row"),
        ({"optimize": "beauty"}, "beauty"),
        ({"target": "tpu"}, "tpu"),
        ({"device": "npu"}, "npu"),
        ({"dims": {"input.0": "elastic"}}, "elastic"),
        ({"rounds": 0}, "at least 1"),
        ({"threads": "many"}, "many"),
        ({"rungs": ["ladder"]}, "ladder"),
        ({"rules": [("mod:x", "fp32")]}, "mod:x"),
    ],
)
def test_a_wrong_word_is_a_usage_error_that_names_it(keywords, words):
    with pytest.raises(AceError, match=words) as caught:
        ace_studio.compile(make_net(), tracing_inputs=[points(2, 1)], **({"rounds": 3} | keywords))
    assert caught.value.problem.code is ErrorCode.USAGE
    assert caught.value.problem.remedy


def test_exporting_a_kind_that_no_run_made_says_which_there_are(tmp_path):
    with pytest.raises(AceError, match=r"No run left a '\.xml' artifact") as caught:
        compiled("onnxruntime").export(tmp_path / "model.xml")
    assert ".onnx" in caught.value.problem.remedy


def test_something_that_is_no_module_is_refused():
    with pytest.raises(AceError, match="instead of a torch"):
        ace_studio.compile(lambda x: x, tracing_inputs=[points(2, 1)])


def test_one_tensor_is_one_example():
    result = ace_studio.compile(make_net(), tracing_inputs=points(2, 1), **QUICK)
    (found,) = result.report.capture.inputs
    assert [dim.size for dim in found.dims] == [2, 8]


class SizedNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 4)

    def forward(self, x):
        return {"rows": x.shape[0], "y": self.linear(x), "version": 3}


@pytest.mark.slow
def test_sizes_and_constants_in_the_result_come_back_as_numbers():
    result = ace_studio.compile(
        SizedNet(),
        tracing_inputs=[points(2, 1), points(5, 2)],
        default="fp32",
        target=["eager", "onnxruntime"],
        rounds=3,
    )
    assert all(run.verified for run in result.report.runs)
    given = result.module(points(7, 3))
    assert (given["rows"], given["version"], tuple(given["y"].shape)) == (7, 3, (7, 4))


def test_a_torchscript_program_is_compiled_as_python_that_answers_like_it():
    script = torch.jit.script(make_net())
    result = ace_studio.compile(script, tracing_inputs=[points(2, 1), points(3, 2)], default="fp32", **QUICK)
    x = points(4, 3)
    torch.testing.assert_close(result.module(x), script(x))
