"""What torch's exporter would make anew for each model is made once, and again where it would not be the same."""

import pytest
import torch

pytest.importorskip("onnxscript")

from torch.onnx._internal.exporter._registration import ONNXRegistry

from ace_studio.engine.torch_private.onnx import registry_made_once


@pytest.fixture
def made(monkeypatch):
    """The registries that torch itself has made."""
    found, make = [], ONNXRegistry.from_torchlib

    def counted(**options):
        found.append(make(**options))
        return found[-1]

    monkeypatch.setattr(ONNXRegistry, "from_torchlib", counted)
    return found


def test_an_export_gets_a_registry_of_its_own_and_leaves_torch_as_it_was(made):
    before = ONNXRegistry.from_torchlib
    with registry_made_once():
        first = ONNXRegistry.from_torchlib(opset_version=18)
        first.functions["aten::relu"].clear()
    with registry_made_once():
        second = ONNXRegistry.from_torchlib(opset_version=18)
    assert len(made) == 1
    assert second.functions["aten::relu"] == made[0].functions["aten::relu"] != []
    assert ONNXRegistry.from_torchlib is before


def test_the_registry_is_made_again_where_operators_came_since(made):
    with registry_made_once():
        ONNXRegistry.from_torchlib(opset_version=18)
    with torch.library._scoped_library("ace_test_registry", "DEF") as library:
        library.define("later(Tensor x) -> Tensor")
        with registry_made_once():
            ONNXRegistry.from_torchlib(opset_version=18)
    assert len(made) == 2
