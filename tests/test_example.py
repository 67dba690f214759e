"""The shipped example keeps the promises of its page: the accuracy, the split, the size, the recipe."""

import importlib.util
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
import torch


def load_file(path: Path) -> ModuleType:
    """Import a file by path under its own name, as the loader and ``python train.py`` do."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def example(digits_folder):
    before = sys.modules.get("model")
    yield load_file(digits_folder / "model.py")
    sys.modules.pop("model")
    if before is not None:
        sys.modules["model"] = before


@pytest.fixture(scope="module")
def trainer(example, digits_folder):
    yield load_file(digits_folder / "train.py")
    sys.modules.pop("train")


@pytest.fixture(scope="module")
def page(digits_folder):
    return (digits_folder / "README.md").read_text(encoding="utf-8")


def number_in(page: str, pattern: str) -> float:
    found = re.search(pattern, page)
    assert found is not None, f"the page does not say {pattern}"
    return float(found.group(1).replace(",", ""))


def test_the_shipped_weights_have_the_accuracy_that_the_page_states(example, page):
    with torch.no_grad():
        accuracy = example.evaluate(example.make_model())
    assert accuracy == pytest.approx(number_in(page, r"\| ([\d.]+) on 599 pictures"), abs=5e-5)
    assert accuracy >= 0.98


def test_training_and_held_out_pictures_are_disjoint_and_are_all_there_are(example):
    train, test = example.load_splits()
    train_numbers, test_numbers = set(train.numbers.tolist()), set(test.numbers.tolist())
    assert not train_numbers & test_numbers
    assert train_numbers | test_numbers == set(range(1797))
    assert len(test_numbers) == 599


def test_every_digit_has_the_same_share_of_both_splits(example):
    train, test = example.load_splits()
    shares = [split.digits.bincount(minlength=10) / len(split.digits) for split in (train, test)]
    assert torch.allclose(*shares, atol=0.003)


def test_calibration_draws_on_training_pictures_only(example):
    train, _ = example.load_splits()
    calibration = torch.cat([batch for (batch,) in example.calibration_inputs()])
    assert len(calibration) == example.CALIBRATION_PICTURES
    assert torch.equal(calibration, train.pixels[: len(calibration)])


def test_pixels_are_brightness_between_zero_and_one(example):
    train, test = example.load_splits()
    for split in (train, test):
        assert split.pixels.shape[1:] == (1, 8, 8)
        assert (split.pixels.min().item(), split.pixels.max().item()) == (0.0, 1.0)


def test_tracing_inputs_differ_in_the_batch_only(example):
    shapes = [tuple(pixels.shape) for (pixels,) in example.tracing_inputs()]
    assert shapes == [(1, 1, 8, 8), (16, 1, 8, 8)]


def test_the_network_has_the_number_of_parameters_that_the_page_states(example, page):
    count = sum(parameter.numel() for parameter in example.make_model().parameters())
    assert count == number_in(page, r"([\d,]+) parameters")


def test_a_guess_that_is_always_zero_scores_a_tenth(example):
    accuracy = example.evaluate(lambda pixels: torch.eye(10)[0].expand(len(pixels), 10))
    assert accuracy == pytest.approx(0.1, abs=0.01)


def test_a_short_training_from_scratch_already_reads_most_held_out_digits(example, trainer):
    train, _ = example.load_splits()
    model = trainer.train(train, epochs=2)
    with torch.no_grad():
        assert example.evaluate(model) > 0.9


def test_training_twice_with_one_seed_gives_the_same_weights(example, trainer):
    train, _ = example.load_splits()
    few = example.Split(train.pixels[:128], train.digits[:128], train.numbers[:128])
    first, second = (trainer.train(few, epochs=1).state_dict() for _ in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_the_recipe_names_callables_that_the_source_has(example, digits_folder):
    recipe = tomllib.loads((digits_folder / "recipe.toml").read_text(encoding="utf-8"))
    assert (digits_folder / recipe["model"]["source"]).is_file()
    named = [recipe["model"]["entry"], recipe["inputs"]["tracing"]]
    named += [recipe["calibration"]["inputs"], recipe["evaluate"]["function"]]
    assert all(callable(getattr(example, name)) for name in named)
    assert recipe["goal"]["max_drop"] == 0.01
