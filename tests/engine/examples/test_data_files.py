"""Examples from files: arrays by name, lists, pictures; and what is said of data that do not fit."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ace_studio.engine.examples import data_files
from ace_studio.engine.examples.data_files import (
    ImageScaling,
    WantedInput,
    choose_indices,
    examples_from_arrays,
    examples_from_images,
)
from ace_studio.engine.flow import Example
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.recipe import Subset

IDS = WantedInput("ids", torch.zeros(2, 7, dtype=torch.int64), frozenset({0, 1}))
X = WantedInput("x", torch.zeros(1, 3, 8, 6), frozenset({0}))
FORM_X = Example((X.template,))


def _tensors(examples):
    return [example.tensors()[0] for example in examples]


def test_each_row_of_an_array_is_an_example_with_a_batch_of_one():
    values = torch.randn(5, 3, 8, 6)
    found = _tensors(examples_from_arrays({"x": values}, FORM_X, [X], samples=64))
    assert len(found) == 5
    assert torch.equal(torch.cat(found), values)


def test_a_fixed_batch_takes_so_many_rows_at_once():
    wanted = WantedInput("x", torch.zeros(2, 4))
    found = _tensors(
        examples_from_arrays({"x": torch.arange(20.0).reshape(5, 4)}, Example((wanted.template,)), [wanted], samples=9)
    )
    assert [tuple(one.shape) for one in found] == [(2, 4), (2, 4)]


def test_an_array_of_whole_inputs_and_a_list_are_taken_as_they_are():
    whole = torch.randn(3, 1, 3, 8, 6)
    assert len(examples_from_arrays({"x": whole}, FORM_X, [X], samples=9)) == 3
    listed = [torch.randn(size, 3, 8, 6) for size in (1, 4)]
    assert [len(one) for one in _tensors(examples_from_arrays({"x": listed}, FORM_X, [X], samples=9))] == [1, 4]


def test_a_model_of_one_input_takes_the_only_array_under_any_name_and_leaves_labels_alone():
    arrays = {"pictures": torch.randn(2, 3, 8, 6), "labels": torch.zeros(2)}
    assert len(examples_from_arrays(arrays, FORM_X, [X], samples=9)) == 2


def test_several_inputs_are_filled_by_name_and_plain_values_stay():
    form = Example((IDS.template,), {"x": X.template, "scale": 2.0})
    arrays = {"x": torch.ones(4, 3, 8, 6), "ids": torch.full((4, 9), 5, dtype=torch.int32)}
    (first, *rest) = examples_from_arrays(arrays, form, [IDS, X], samples=9)
    assert len(rest) == 3
    assert first.args[0].dtype is torch.int64
    assert tuple(first.args[0].shape) == (1, 9)
    assert first.kwargs["scale"] == 2.0


@pytest.mark.parametrize("name", ["label", "target", "y"])
def test_labels_are_left_alone_under_every_name_that_evaluation_knows(name):
    arrays = {"pictures": torch.randn(2, 3, 8, 6), name: torch.zeros(2)}
    assert len(examples_from_arrays(arrays, FORM_X, [X], samples=9)) == 2
    y = WantedInput("y", X.template, X.free)
    assert len(examples_from_arrays({"y": torch.randn(2, 3, 8, 6)}, FORM_X, [y], samples=9)) == 2


def test_a_list_of_examples_is_what_a_function_would_give():
    content = [(torch.zeros(1, 2),), {"x": torch.ones(1, 2)}]
    found = examples_from_arrays({"": content}, FORM_X, [X], samples=9)
    assert [len(one.args) for one in found] == [1, 0]


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"x": torch.zeros(4, 3, 8, 7)}, "[4, 3, 8, 7]; expected is float32 [any, 3, 8, 6]"),
        ({"x": torch.zeros(4, 3)}, "[4, 3]"),
        ({"x": torch.zeros(4, 3, 8, 6, dtype=torch.uint8)}, "numbers are uint8"),
        ({"x": torch.zeros(0, 3, 8, 6)}, "empty"),
        ({"x": []}, "empty list"),
        ({"x": [torch.zeros(1, 3, 8, 6), "a"]}, "not an array"),
        ({"a": torch.zeros(1), "b": torch.zeros(1)}, "holds a, b"),
    ],
)
def test_what_does_not_fit_is_named_with_what_was_expected(arrays, words):
    with pytest.raises(AceError) as caught:
        examples_from_arrays(arrays, FORM_X, [X], samples=9, where="here")
    assert caught.value.problem.code is ErrorCode.BAD_INPUT
    assert "x" in caught.value.problem.what
    assert words in caught.value.problem.why
    assert caught.value.problem.where == "here"


def test_every_array_that_does_not_fit_is_told_at_once():
    form = Example((IDS.template, X.template))
    with pytest.raises(AceError) as caught:
        examples_from_arrays({"ids": torch.zeros(1, 7), "x": torch.zeros(1, 3)}, form, [IDS, X], samples=9)
    assert len(caught.value.problems) == 2


def test_arrays_of_different_length_are_refused():
    form = Example((IDS.template, X.template))
    arrays = {"ids": torch.zeros(3, 7, dtype=torch.int64), "x": torch.zeros(4, 3, 8, 6)}
    with pytest.raises(AceError, match="equally many"):
        examples_from_arrays(arrays, form, [IDS, X], samples=9)


def test_subsets_keep_the_order_and_random_ones_are_the_same_every_time():
    assert choose_indices(10, samples=4, subset=Subset.FIRST) == [0, 1, 2, 3]
    assert choose_indices(10, samples=4, subset=Subset.SPREAD) == [0, 2, 5, 7]
    drawn = choose_indices(100, samples=10, subset=Subset.RANDOM)
    assert drawn == sorted(set(drawn)) == choose_indices(100, samples=10, subset=Subset.RANDOM)
    assert drawn != list(range(10))
    for subset in Subset:
        assert choose_indices(3, samples=9, subset=subset) == [0, 1, 2]


# --- pictures ---

pillow = pytest.importorskip("PIL.Image", reason="needs Pillow")


def _save(path, colour, size=(20, 10)):
    path.parent.mkdir(parents=True, exist_ok=True)
    pillow.new("RGB", size, colour).save(path)


def test_pictures_are_resized_and_scaled(tmp_path):
    _save(tmp_path / "b.png", (0, 0, 0))
    _save(tmp_path / "deep" / "a.PNG", (255, 0, 51))
    (tmp_path / "notes.txt").write_text("no picture")
    scaling = ImageScaling(mean=(0.5, 0.5, 0.5), std=(0.5, 1.0, 1.0))
    first, second = _tensors(examples_from_images(tmp_path, FORM_X, [X], samples=9, scaling=scaling))
    assert first.shape == X.template.shape
    assert torch.equal(first[0, :, 0, 0], torch.tensor([-1.0, -0.5, -0.5]))
    assert second[0, :, 3, 3].tolist() == pytest.approx([1.0, -0.5, -0.3])


def test_one_channel_makes_pictures_grey_and_channels_may_come_last(tmp_path):
    _save(tmp_path / "a.png", (255, 255, 255))
    grey = WantedInput("x", torch.zeros(2, 1, 4, 5))
    last = WantedInput("x", torch.zeros(1, 4, 5, 3))
    for wanted in (grey, last):
        (found,) = _tensors(examples_from_images(tmp_path, Example((wanted.template,)), [wanted], samples=9))
        assert torch.equal(found, torch.ones_like(wanted.template))


def test_a_folder_without_pictures_and_a_model_without_pictures_are_told(tmp_path):
    with pytest.raises(AceError, match="no images"):
        list(examples_from_images(tmp_path, FORM_X, [X], samples=9))
    _save(tmp_path / "a.png", (1, 2, 3))
    with pytest.raises(AceError, match="does not fit"):
        list(examples_from_images(tmp_path, Example((IDS.template,)), [IDS], samples=9))
    with pytest.raises(AceError, match="2 values for 3 channels"):
        list(examples_from_images(tmp_path, FORM_X, [X], samples=9, scaling=ImageScaling(mean=(0.5, 0.5))))
    (tmp_path / "0.png").write_bytes(b"broken")
    with pytest.raises(AceError, match=r"0\.png"):
        list(examples_from_images(tmp_path, FORM_X, [X], samples=9))


def test_without_pillow_the_install_line_is_given(tmp_path, monkeypatch):
    monkeypatch.setattr(data_files.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(AceError) as caught:
        list(examples_from_images(tmp_path, FORM_X, [X], samples=9))
    assert caught.value.problem.code is ErrorCode.NOT_INSTALLED
    assert "pillow" in caught.value.problem.remedy


def test_numbers_of_numpy_arrive_as_they_are(tmp_path):
    from ace_studio.engine.load.tensors import read_arrays

    np.savez(tmp_path / "a.npz", x=np.ones((2, 3, 8, 6)))
    (first, _) = _tensors(examples_from_arrays(read_arrays(tmp_path / "a.npz"), FORM_X, [X], samples=9))
    assert first.dtype is torch.float32
