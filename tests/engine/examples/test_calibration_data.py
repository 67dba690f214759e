"""Calibration data that a recipe names as a file: found, read once an example fits, and given like a function's."""

import numpy as np
import pytest
import torch

from ace_studio.engine.load import load_model
from ace_studio.engine.pipeline.ready import make_ready
from ace_studio.engine.progress import Reporter
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes import recipe as recipes

MODEL = """
import torch
def make():
    return torch.nn.Linear(4, 2)
def inputs():
    return [(torch.zeros(1, 4),), (torch.zeros(3, 4),)]
def labels():
    return []
"""


def _data(folder, given, **calibration):
    (folder / "model.py").write_text(MODEL)
    recipe = recipes.Recipe(
        model=recipes.ModelChoice(source="model.py", entry="make"),
        inputs=recipes.InputsChoice(tracing="inputs"),
        calibration=recipes.CalibrationChoice(inputs=given, **calibration),
        measure=recipes.MeasureChoice(device="cpu"),
    )
    loaded = load_model(recipe, folder, is_trusted=lambda sha256: True, reporter=Reporter())
    return make_ready(loaded, recipe, folder).loaded.data


def test_an_npz_file_gives_one_example_per_row(tmp_path):
    values = np.arange(40, dtype=np.float64).reshape(10, 4)
    np.savez(tmp_path / "data.npz", input=values)
    found = list(_data(tmp_path, "data.npz", samples=4, subset=recipes.Subset.SPREAD).calibration())
    assert [float(one.tensors()[0][0, 0]) for one in found] == [0.0, 8.0, 20.0, 28.0]
    assert found[0].tensors()[0].dtype is torch.float32


def test_a_pt_file_may_hold_a_list(tmp_path):
    torch.save([torch.ones(2, 4), torch.ones(5, 4)], tmp_path / "data.pt")
    found = list(_data(tmp_path, "data.pt").calibration())
    assert [len(one.tensors()[0]) for one in found] == [2, 5]


def test_a_file_that_does_not_fit_says_so_when_it_is_read(tmp_path):
    np.savez(tmp_path / "data.npz", input=np.zeros((3, 5)))
    data = _data(tmp_path, "data.npz")
    with pytest.raises(AceError, match="does not fit"):
        data.calibration()


@pytest.mark.parametrize("given", ["gone.npz", "gone/"])
def test_a_file_that_is_not_there_is_told_at_once(tmp_path, given):
    with pytest.raises(AceError) as caught:
        _data(tmp_path, given)
    assert caught.value.problem.code is ErrorCode.NOT_FOUND


def test_a_function_is_still_a_function(tmp_path):
    (tmp_path / "labels").mkdir()  # a folder of that name is no reason to take it for one
    assert list(_data(tmp_path, "labels").calibration()) == []
