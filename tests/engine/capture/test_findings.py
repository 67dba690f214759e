"""The verdict on every dimension."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from ace_studio.engine.capture.findings import condition_in_words
from ace_studio.engine.capture.verify import difference
from ace_studio.engine.flow import Example
from ace_studio.engine.targets import TARGETS
from ace_studio.records.recipes.recipe import InputsChoice, Recipe
from ace_studio.records.tensors import DimChoice, DimVerdict
from tests import tiny_models
from tests.engine.capture.captures import KeptCaptures, capture, dims
from tests.engine.targets.onnx_cases import job_for


@pytest.mark.parametrize("name", tiny_models.EASY)
def test_a_dimension_is_dynamic_exactly_where_the_examples_differ(kept: KeptCaptures, name: str) -> None:
    captured, _ = kept.of(name)
    shapes = [[tensor.shape for tensor in Example.of(one).tensors()] for one in tiny_models.EASY[name]().examples]
    for leaf, found in enumerate(captured.inputs):
        for dim in found.dims:
            given = {shape[leaf][dim.index] for shape in shapes}
            assert (dim.verdict is DimVerdict.DYNAMIC) == (len(given) > 1)
            assert given <= set(dim.verified_sizes)
            if dim.verdict is DimVerdict.DYNAMIC:
                assert set(dim.verified_sizes) - given, f"{found.name}.{dim.index} was tried at no unseen size"


def test_a_batch_that_is_once_one_and_shared_by_two_inputs_is_dynamic_from_one_up(kept: KeptCaptures) -> None:
    captured, _ = kept.of("lstm_cell")
    found = dims(captured)
    assert found["x.0"].symbol == found["state.1"].symbol == "s0"
    assert found["x.0"].equal_to == "state.1"
    assert found["x.0"].min == 1
    assert captured.dynamic_dims() == [{0: "s0"}, {1: "s0"}]
    graph = captured.program.module()
    one = Example((torch.ones(1, 8), torch.zeros(2, 1, 16)))
    assert not difference(one.call(captured.module), one.call(graph))


def test_a_size_that_was_only_ever_one_is_unknown_and_asks_for_a_row() -> None:
    captured, _ = capture(nn.Linear(4, 4), [(torch.ones(1, 4),)])
    assert dims(captured)["input.0"].verdict is DimVerdict.UNKNOWN
    assert "add a row" in dims(captured)["input.0"].reason
    assert dims(captured)["input.1"].verdict is DimVerdict.STATIC


def test_the_recipe_can_make_a_dimension_dynamic_that_one_example_leaves_at_one() -> None:
    recipe = Recipe(inputs=InputsChoice(dims={"input.0": DimChoice.DYNAMIC}))
    captured, _ = capture(nn.Linear(4, 4), [(torch.ones(1, 4),)], recipe)
    found = dims(captured)["input.0"]
    assert found.verdict is DimVerdict.DYNAMIC
    assert len(found.verified_sizes) >= 3
    assert tuple(captured.example.tensors()[0].shape) == (2, 4)


class Tied(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.cat([x, x], 1)[:, 1:] + y


def test_sizes_that_follow_from_each_other_are_kept_together() -> None:
    captured, _ = capture(Tied(), [(torch.ones(2, n), torch.ones(2, 2 * n - 1)) for n in (4, 6)])
    found = dims(captured)
    assert found["x.1"].verdict is found["y.1"].verdict is DimVerdict.DYNAMIC
    assert "s0" in (found["y.1"].symbol or "")
    assert captured.unseen
    for example in captured.unseen:
        x, y = example.tensors()
        assert y.shape[1] == 2 * x.shape[1] - 1


def test_a_rule_that_sizes_must_obey_is_told_in_the_verdict() -> None:
    captured, _ = capture(nn.PixelUnshuffle(2), [(torch.ones(1, 1, 8, 8),), (torch.ones(1, 1, 12, 12),)])
    assert "only where" in dims(captured)["input.2"].reason
    assert "input.2 is a multiple of 2" in dims(captured)["input.2"].reason
    assert "only where" not in dims(captured)["input.0"].reason, "the rule holds for every batch"


class Positions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(16, 4)
        self.register_buffer("numbers", torch.arange(16))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.table(self.numbers[: x.shape[1]])


def test_a_table_of_positions_limits_the_length() -> None:
    captured, _ = capture(Positions(), [(torch.ones(1, 5, 4),), (torch.ones(1, 15, 4),)])
    found = dims(captured)["x.1"]
    assert found.max == 16
    assert set(found.verified_sizes) - {5, 15}
    assert max(found.verified_sizes) <= 16


def test_a_branch_on_a_size_that_no_example_has_is_told_in_the_verdict() -> None:
    captured, _ = capture(tiny_models.size_specialised().module, [(torch.ones(2, 5, 4),), (torch.ones(2, 8, 4),)])
    assert "not valid at 3" in dims(captured)["x.1"].reason


X, Y = "L['x'].size()[2]", "L['y'].size()[0]"


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        (f"({X} % 4) == 0", "x.2 is a multiple of 4"),
        (f"(64*({X} // 4)*{Y}) == (16*{X}*{Y})", "x.2 is a multiple of 4"),
        (f"1 < 3*{X}*{Y}", ""),
        (f"{X} >= 7", "x.2 is at least 7"),
        (f"2*{X} == {Y}", "as it stands"),
        (f"{X}.is_odd()", "as it stands"),
        (f"(16 // ({X} - 3)) == 1", "as it stands"),
    ],
)
def test_a_condition_is_said_in_words_where_there_are_any(condition: str, words: str) -> None:
    sizes = {X: 8, Y: 6}
    assert condition_in_words(condition, sizes, size=X, name="x.2", shown="as it stands") == words


class Step(nn.Module):
    """One step of a decoder: new tokens behind a cache of at most 16, which is empty at the first call."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.place = nn.Embedding(10, 8), nn.Embedding(16, 8)

    def forward(self, ids: Tensor, cache: Tensor) -> tuple[Tensor, Tensor]:
        keys = torch.cat([cache, self.embed(ids)], 1)
        keys = keys + self.place.weight[: keys.shape[1]]
        return keys.softmax(-1).sum(1), keys


def test_a_cache_that_is_empty_at_first_may_be_empty_in_every_artifact() -> None:
    torch.manual_seed(0)
    rows = [(torch.randint(0, 10, (b, t)), torch.randn(b, past, 8)) for b, t, past in ((1, 1, 0), (2, 3, 7))]
    captured, _ = capture(Step().eval(), rows, Recipe())
    found = dims(captured)["cache.1"]
    assert (found.verdict, found.min, found.verified_sizes[:1]) == (DimVerdict.DYNAMIC, 0, (0,))
    for name in ("eager", "onnxruntime", "openvino"):
        if TARGETS[name].missing():
            continue
        lowered = TARGETS[name].lower(job_for(TARGETS[name], captured))
        for b, t, past in ((1, 1, 0), (3, 2, 0), (2, 1, 1), (1, 4, 9)):
            call = torch.randint(0, 10, (b, t)), torch.randn(b, past, 8)
            torch.testing.assert_close(lowered(*call), captured.module(*call), rtol=1e-4, atol=1e-5)
