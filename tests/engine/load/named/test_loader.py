"""Models that are opened by name are described and built."""

import importlib.util

import pytest
import torch

from ace_studio.engine.load import inspect_file
from ace_studio.engine.progress import Reporter
from ace_studio.records.errors import ErrorCode
from tests.engine.load.samples import load, problem_of

if importlib.util.find_spec("timm") is None:
    pytest.skip("timm is not installed", allow_module_level=True)
SMALL = "timm:test_resnet"


def test_weights_from_a_file_go_into_a_named_model(tmp_path):
    trained = {name: tensor + 1 for name, tensor in load(tmp_path, SMALL).module.state_dict().items()}
    torch.save({"state_dict": {f"module.{name}": tensor for name, tensor in trained.items()}}, tmp_path / "w.pth")
    reporter = Reporter()

    loaded = load(tmp_path, SMALL, weights="w.pth", reporter=reporter)

    assert all(torch.equal(tensor, trained[name]) for name, tensor in loaded.module.state_dict().items())
    assert not reporter.warnings


def test_what_a_name_is_can_be_seen_without_building_it(tmp_path):
    report = inspect_file(tmp_path / SMALL)
    loaded = load(tmp_path, SMALL)

    assert (report.path, report.kind, report.trust) == (SMALL, "timm", "data")
    assert {one.name: one.shape for one in report.tensors} == {
        name: tuple(tensor.shape) for name, tensor in loaded.module.state_dict().items()
    }
    assert [row["x"].shape for row in report.inputs] == [tuple(e.tensors()[0].shape) for e in loaded.data.examples]
    assert f"{sum(one.numel() for one in loaded.module.parameters()):,} parameters" in report.notes
    assert not any("random" in note for note in report.notes)  # the recipe may name weights


def test_a_named_model_takes_no_entry(tmp_path):
    problem = problem_of(tmp_path, SMALL, entry="make_model")
    assert problem.code is ErrorCode.RECIPE
    assert "make_model" in problem.what
