"""Keys of the capture cache, and digests of the content behind them."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from ace_studio.engine.capture.cache_key import cache_key, content_digest, file_digest, late_files
from ace_studio.engine.flow import Example, LoadedModel

X = (Example((torch.ones(2, 3),)),)


def model(**attributes: Any) -> nn.Module:
    module = nn.Sequential(nn.Linear(3, 2))
    for name, value in attributes.items():
        setattr(module, name, value)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.fill_(0.5)
    return module


def key(module: nn.Module, examples: tuple[Example, ...] = X) -> str:
    return cache_key(LoadedModel(module=module, source=Path(), sha256="abc"), examples, fingerprint="f")


def test_numbers_of_weights_and_examples_are_in_the_content_and_not_in_the_key() -> None:
    other = model()
    with torch.no_grad():
        other[0].weight.add_(1)
    assert key(other) == key(model())
    assert content_digest(other, X) != content_digest(model(), X)
    zeros = (Example((torch.zeros(2, 3),)),)
    assert key(model(), zeros) == key(model())
    assert content_digest(model(), zeros) != content_digest(model(), X)


@pytest.mark.parametrize("module", [model(scale=2.0), model(table=torch.ones(2)), nn.Sequential(nn.Linear(3, 4))])
def test_structure_and_plain_attributes_are_in_the_key(module: nn.Module) -> None:
    assert key(module) != key(model())


def test_the_form_of_the_examples_is_in_the_key() -> None:
    assert key(model(), (Example((torch.ones(5, 3),)),)) != key(model())
    assert key(model(), (Example(kwargs={"input": torch.ones(2, 3)}),)) != key(model())


def test_a_parameter_that_gets_its_shape_at_the_first_call_has_no_numbers_yet() -> None:
    layer = nn.Linear(2, 2, bias=False)
    layer.weight = nn.parameter.UninitializedParameter()
    before = content_digest(layer, ())
    layer.weight.materialize((2, 2))
    assert before != content_digest(layer, ())


def test_a_file_that_cannot_be_read_has_an_empty_digest(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a")
    assert file_digest(tmp_path / "none") == ""
    assert len(file_digest(tmp_path / "a")) == 64


def test_a_model_without_a_file_has_no_late_files() -> None:
    assert late_files(LoadedModel(module=model(), source=Path(), sha256="")) == {}


@pytest.mark.parametrize(("before", "after"), [(2.0, 3.0), (2, 2.0), (torch.ones(2), torch.zeros(2)), ([1, 2], [2, 1])])
def test_the_values_of_plain_attributes_are_in_the_key(before: object, after: object) -> None:
    assert key(model(scale=before)) == key(model(scale=before))
    assert key(model(scale=before)) != key(model(scale=after))
