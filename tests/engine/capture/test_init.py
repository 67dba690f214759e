"""Capturing from end to end, on tiny models of every kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ace_studio.engine.capture import capture_fingerprint
from ace_studio.engine.capture.verify import difference
from ace_studio.engine.flow import LoadedModel
from ace_studio.engine.progress import Reporter
from ace_studio.engine.targets.shared.flat_call import FlatCall
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.recipe import InputsChoice, Recipe
from ace_studio.records.tensors import DimChoice, DimVerdict
from tests import tiny_models
from tests.engine.capture.captures import CPU, KeptCaptures, by, capture, dims


@pytest.mark.parametrize("name", tiny_models.EASY)
def test_easy_models_are_captured_by_the_first_method_and_equal_eager_at_unseen_sizes(
    kept: KeptCaptures, name: str
) -> None:
    captured, report = kept.of(name)
    assert report.rung == "export"
    assert [one.name for one in report.rungs] == list(Recipe().capture.rungs)
    assert captured.unseen
    graph = captured.program.module()
    with torch.no_grad():
        for example in captured.examples:
            assert not difference(example.call(captured.module), example.call(graph))


class SmallEncoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(100, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)

    def forward(self, input_ids: Tensor) -> Tensor:
        return self.encoder(self.embed(input_ids))


def picture_net() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 4, 3, 2, 1), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())


@pytest.mark.parametrize(
    ("make", "shapes", "dynamic"),
    [
        (picture_net, [(1, 3, 224, 224), (2, 3, 224, 224)], ["input.0"]),
        (picture_net, [(1, 3, 224, 224), (1, 3, 320, 640)], ["input.2", "input.3"]),
        (SmallEncoder, [(1, 1), (1, 256)], ["input_ids.1"]),
        (SmallEncoder, [(1, 256), (2, 1)], ["input_ids.0", "input_ids.1"]),
    ],
)
def test_the_cases_of_the_vendors_questions_are_right_size_one_included(
    make: Any, shapes: list[tuple[int, ...]], dynamic: list[str]
) -> None:
    module = make()
    name = "input" if make is picture_net else "input_ids"
    values = [torch.randint(0, 100, shape) if make is SmallEncoder else torch.randn(shape) for shape in shapes]
    captured, _ = capture(module, [{name: value} for value in values])
    assert [key for key, dim in dims(captured).items() if dim.verdict is DimVerdict.DYNAMIC] == dynamic


def test_a_model_that_counts_in_a_buffer_is_captured_and_keeps_its_count() -> None:
    class Counts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("n", torch.zeros(()))

        def forward(self, x: Tensor) -> Tensor:
            self.n.add_(1)
            return x + self.n

    module = Counts()
    _, report = capture(module, [(torch.ones(2, 3),)])
    assert report.rung == "export"
    assert float(module.n) == 0


def test_capture_leaves_the_state_of_the_module_as_it_was() -> None:
    tiny = tiny_models.stateful()
    with pytest.raises(AceError):
        capture(tiny.module, tiny.examples, by("export", "fx"))
    assert tiny.module.calls == 0
    capture(tiny.module, tiny.examples, by("partial"))
    assert tiny.module.calls == 0


def test_the_fingerprint_follows_weights_and_inputs_but_not_the_plan() -> None:
    module = nn.Linear(2, 2)
    loaded = LoadedModel(module=module, source=Path(), sha256="")
    first = capture_fingerprint(loaded, Recipe(), CPU)
    assert capture_fingerprint(loaded, Recipe(targets=Recipe().targets), CPU) == first
    other = Recipe(inputs=InputsChoice(dims={"input.0": DimChoice.DYNAMIC}))
    assert capture_fingerprint(loaded, other, CPU) != first
    with torch.no_grad():
        module.weight.add_(1)
    assert capture_fingerprint(loaded, Recipe(), CPU) != first


EXPORT = by("export")
X, Y = torch.randn(2, 3, 4, 4), torch.randn(2, 5)
X_LAST = X.contiguous(memory_format=torch.channels_last)


class Branches(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x.mean() * 2 + y if x.is_contiguous() else x.mean() + 1 + y


class Memory(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x.mean() + y.as_strided((4,), (1,))


class Views(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x.view(2, -1).sum() + y


class Draws(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return (x + torch.rand_like(x)).sum((2, 3)) + y.sum()


@pytest.mark.parametrize(
    ("module", "x", "orders"),
    [
        (Branches(), X, ((0, 1, 2, 3), ())),
        (Branches(), X_LAST, ((0, 2, 3, 1), ())),
        (Memory(), X, ((), (0, 1))),
        (Views(), X, ((), ())),  # eager refuses the other layout, the graph gives what the same numbers give
        (Draws(), X, ((), ())),
    ],
    ids=["contiguous", "channels-last", "as-strided", "view", "random"],
)
def test_only_inputs_whose_layout_changes_the_result_are_bound_to_the_traced_one(module, x, orders):
    reporter = Reporter()
    captured, _ = capture(module.eval(), [(x, Y)], EXPORT, reporter)
    assert tuple(one.memory_order for one in captured.inputs) == orders
    assert any(one.code == "memory-layout" for one in reporter.warnings) == any(orders)


def test_a_call_in_another_layout_is_refused_with_the_layout_in_words():
    captured, _ = capture(Branches().eval(), [(X, Y)], EXPORT)
    call = FlatCall(captured).around(lambda x, y: [x.mean() * 2 + y])
    assert torch.equal(call(X, Y), Branches()(X, Y))
    for other in (X_LAST, X.mT):
        with pytest.raises(AceError, match="x must be contiguous") as caught:
            call(other, Y)
        assert caught.value.problem.code is ErrorCode.BAD_INPUT
    assert torch.equal(call(X, Y.mT.contiguous().mT), Branches()(X, Y))
