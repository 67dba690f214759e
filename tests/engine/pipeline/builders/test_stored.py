"""A captured model on disk is the one that was written: names, numbers, shared weights, calls."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import torch
from torch import nn

from ace_studio.engine.capture import capture_model
from ace_studio.engine.examples.stored_calls import CannotLeaveError
from ace_studio.engine.flow import CapturedModel, Example, LoadedModel
from ace_studio.engine.pipeline.builders.stored import StoredCapture, read_capture, store_capture
from ace_studio.engine.progress import Reporter
from ace_studio.records.recipes.recipe import CaptureChoice, Recipe
from tests import tiny_models


def captured(module: nn.Module, *calls: object) -> CapturedModel:
    recipe = Recipe(capture=CaptureChoice(rungs=("export",), cache=False))
    loaded = LoadedModel(module=module.eval(), source=Path(), sha256="")
    examples = [Example.of(call) for call in calls]
    found, _ = capture_model(loaded, examples, recipe, device=torch.device("cpu"), reporter=Reporter())
    assert isinstance(found, CapturedModel)
    return found


@pytest.mark.parametrize("make", [tiny_models.conv_net, tiny_models.text_model, tiny_models.many_outputs])
def test_what_is_read_is_what_was_written(make, tmp_path):
    tiny = make()
    model = captured(tiny.module, *tiny.examples)
    store_capture(model, model.examples[:1], tmp_path)
    back, calibration = read_capture(tmp_path)
    assert [node.name for node in back.program.graph.nodes] == [node.name for node in model.program.graph.nodes]
    assert back.table == model.table
    assert back.inputs == model.inputs
    assert back.dynamic_dims() == model.dynamic_dims()
    assert len(back.unseen) == len(model.unseen)
    for own, read in zip(model.examples, back.examples, strict=True):
        expected, given = own.copied().call(model.program.module()), read.call(back.program.module())
        torch.testing.assert_close(given, expected)  # memory that lies otherwise may be summed in another order
    torch.testing.assert_close(calibration[0].tensors(), model.examples[0].tensors(), rtol=0, atol=0)


class Tied(nn.Module):
    """An embedding whose table is also the last layer's weight."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(11, 8)
        self.head = nn.Linear(8, 11, bias=False)
        self.head.weight = self.table.weight
        self.register_buffer("part", self.table.weight.detach()[2:4])  # a view of it, with memory of its own in no file

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.table(tokens)) + self.part.sum()


def test_a_shared_weight_is_stored_once_and_shared_again(tmp_path):
    model = captured(Tied(), torch.arange(5))
    store_capture(model, (), tmp_path)
    back, _ = read_capture(tmp_path)
    state = back.program.state_dict
    assert state["table.weight"].data_ptr() == state["head.weight"].data_ptr()
    assert (tmp_path / "weights.safetensors").stat().st_size < 2 * 11 * 8 * 4
    torch.testing.assert_close(back.program.module()(torch.arange(5)), model.module(torch.arange(5)), rtol=0, atol=0)


def test_a_graph_that_reads_otherwise_is_refused(tmp_path):
    tiny = tiny_models.mlp()
    model = captured(tiny.module, *tiny.examples)
    store_capture(model, (), tmp_path)
    about = tmp_path / "about.msgpack"
    stored = msgspec.msgpack.decode(about.read_bytes(), type=StoredCapture)
    about.write_bytes(msgspec.msgpack.encode(msgspec.structs.replace(stored, reading="another")))
    with pytest.raises(ValueError, match="reads otherwise"):
        read_capture(tmp_path)


def test_an_operator_of_the_models_own_code_cannot_leave(tmp_path):
    @torch.library.custom_op("ace_tests::doubled", mutates_args=())
    def doubled(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    doubled.register_fake(torch.empty_like)

    class Own(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return doubled(x) + 1

    model = captured(Own(), torch.randn(3))
    with pytest.raises(CannotLeaveError, match=r"ace_tests\.doubled"):
        store_capture(model, (), tmp_path)
