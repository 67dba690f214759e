"""Functions are replaced wherever the user's code finds them, and only for a while."""

from __future__ import annotations

import math

import pytest
from torch import nn

from ace_studio.engine.capture.namespaces import model_modules, replaced


def helper() -> str:
    return "own"


same_helper = helper


class Net(nn.Module):
    def forward(self, x: object) -> object:
        return x


def test_every_name_of_a_function_means_the_substitute_while_the_block_runs() -> None:
    with replaced(Net(), {helper: lambda: "other", math.sqrt: lambda value: -value}):
        assert (helper(), same_helper()) == ("other", "other")
    assert (helper(), same_helper()) == ("own", "own")
    assert math.sqrt(4) == 2


def test_a_built_in_function_gets_a_name_in_the_models_module_and_loses_it_again() -> None:
    with replaced(Net(), {len: lambda value: 42}):
        assert len([]) == 42
    assert "len" not in globals()


def test_names_are_put_back_when_the_block_raises() -> None:
    with pytest.raises(ZeroDivisionError), replaced(Net(), {helper: lambda: "other"}):
        raise ZeroDivisionError
    assert helper() == "own"


def test_the_module_of_the_models_class_is_among_the_models_modules() -> None:
    assert __name__ in [one.__name__ for one in model_modules(Net())]
