"""Models that are opened by their name in an installed package: built offline, the same every time."""

import importlib.util

import pytest
import torch

from ace_studio.engine.flow import Example
from ace_studio.engine.load import inspect_file
from ace_studio.engine.load.named.models import find_model
from ace_studio.engine.progress import Reporter
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.named_source import NamedSource, named_source
from tests.engine.load.samples import load, problem_of

if importlib.util.find_spec("timm") is None or importlib.util.find_spec("torchvision") is None:
    pytest.skip("timm or torchvision is not installed", allow_module_level=True)
SMALL = "timm:test_resnet"


def test_a_name_is_told_from_a_path(tmp_path):
    assert named_source("timm:resnet18.a1_in1k") == NamedSource("timm", "resnet18.a1_in1k")
    assert named_source(tmp_path / "torchvision:vgg11") == NamedSource("torchvision", "vgg11")
    for path in ("resnet18.pt", "keras:resnet", "timm:", "timm:a/b.py", "C:\\model.pt", ""):
        assert named_source(path) is None
    (tmp_path / "timm:mine").touch()
    assert named_source(tmp_path / "timm:mine") is None  # a file of that name is a file


def test_a_model_is_built_from_its_name_with_examples_and_the_same_weights_every_time(tmp_path):
    reporter = Reporter()
    loaded, again = load(tmp_path, SMALL, reporter=reporter), load(tmp_path, SMALL)

    assert not loaded.module.training
    assert [example.tensors()[0].shape[0] for example in loaded.data.examples] == [1, 2]
    with torch.no_grad():
        for example in loaded.data.examples:
            assert torch.equal(example.call(loaded.module), example.call(again.module))
    assert [warning.code for warning in reporter.warnings] == ["random-weights"]
    assert loaded.sha256 == again.sha256
    assert loaded.files


def test_an_unknown_name_is_answered_with_the_nearest_ones(tmp_path):
    problem = problem_of(tmp_path, "timm:resnt18")
    assert problem.code is ErrorCode.NOT_FOUND
    assert problem.remedy == "did you mean 'timm:resnet18'?"
    with pytest.raises(AceError, match="has no model 'zzzzzzzzzz'"):
        inspect_file(tmp_path / "timm:zzzzzzzzzz")


def test_a_package_that_is_not_installed_is_said_with_the_line_that_installs_it(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "timm", None)  # importing it raises then
    problem = problem_of(tmp_path, SMALL)
    assert problem.code is ErrorCode.NOT_INSTALLED
    assert problem.remedy.endswith("-m pip install timm")


@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("resnet18", {"x": (2, 3, 224, 224)}),
        ("lraspp_mobilenet_v3_large", {"input": (2, 3, 256, 256)}),
        ("ssdlite320_mobilenet_v3_large", {"images.0": (3, 256, 384)}),
        ("raft_small", {"image1": (2, 3, 128, 128), "image2": (2, 3, 128, 128)}),
        ("r3d_18", {"x": (2, 3, 16, 112, 112)}),
        ("regnet_y_400mf", {"x": (2, 3, 224, 224)}),
    ],
)
def test_torchvision_examples_have_the_form_that_the_task_takes(name, inputs):
    model = find_model(NamedSource("torchvision", name))
    rows = model.rows(model.build_on_meta())
    assert {one.name: one.shape for one in rows[1]} == inputs


def test_a_detection_model_runs_on_the_pictures_that_are_proposed(tmp_path):
    loaded = load(tmp_path, "torchvision:ssdlite320_mobilenet_v3_large")
    example = loaded.data.examples[0]
    assert isinstance(example, Example)
    with torch.no_grad():
        (found,) = example.call(loaded.module)
    assert found["boxes"].shape[1] == 4
