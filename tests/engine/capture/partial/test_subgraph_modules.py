"""Submodules as subgraphs: flat tensors in, flat tensors out."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from ace_studio.engine.capture.partial.recording import RecordedCalls
from ace_studio.engine.capture.partial.subgraph_modules import NotASubgraphError, SubgraphSource, module_source


class Scaled(nn.Module):
    def forward(self, pair: dict[str, Tensor], scale: float = 1.0) -> dict[str, object]:
        return {"sum": (pair["a"] + pair["b"]) * scale, "scale": scale}


class Net(nn.Module):
    def __init__(self, child: nn.Module) -> None:
        super().__init__()
        self.inner = nn.ModuleDict({"child": child})


def source(child: nn.Module, *calls: tuple[tuple, dict]) -> SubgraphSource:
    recorded = RecordedCalls(calls=list(calls), count=len(calls))
    return module_source(Net(child), "inner.child", recorded, name="p0", first=2)


def pair(size: int) -> dict[str, Tensor]:
    return {"a": torch.ones(size), "b": torch.full((size,), 2.0)}


def test_a_submodule_takes_the_tensors_of_its_nested_call_and_gives_those_of_its_result() -> None:
    made = source(Scaled(), ((pair(2),), {"scale": 3.0}), ((pair(5),), {"scale": 3.0}))
    assert [tuple(one.tensors()[0].shape) for one in made.examples] == [(2,), (5,)]
    (result,) = made.module(torch.ones(4), torch.ones(4))
    assert torch.equal(result, torch.full((4,), 6.0))
    assert (made.place.module, made.first_forward) == ("inner.child", 2)
    assert dict(made.place.constants) == {1: 3.0}


def test_the_weights_keep_their_names_in_the_model() -> None:
    made = source(nn.Linear(3, 2), ((torch.ones(2, 3),), {}))
    assert list(dict(made.module.named_parameters())) == ["inner.child.weight", "inner.child.bias"]


@pytest.mark.parametrize(
    ("calls", "why"),
    [
        ([((pair(2),), {}), ((pair(2), 2.0), {})], "nested in different ways"),
        ([((pair(2),), {"scale": 1.0}), ((pair(2),), {"scale": 2.0})], "changes from call to call"),
        ([((), {"scale": 1.0})], "without a tensor"),
    ],
)
def test_calls_that_differ_in_more_than_sizes_are_no_subgraph(calls: list, why: str) -> None:
    with pytest.raises(NotASubgraphError, match=why):
        source(Scaled(), *calls)


def test_a_result_without_tensors_is_no_subgraph() -> None:
    class Counts(nn.Module):
        def forward(self, x: Tensor) -> int:
            return len(x)

    with pytest.raises(NotASubgraphError, match="gives no tensor"):
        source(Counts(), ((torch.ones(2),), {}))


class Cache:
    """A container that looks at its tensors when it is made, as caches of language models do."""

    def __init__(self, keys: Tensor) -> None:
        self.keys = keys.to(keys.dtype)


pytree.register_pytree_node(
    Cache, lambda value: ([value.keys], None), lambda items, _none: Cache(*items), serialized_type_name="tests.Keys"
)


def test_a_container_that_asks_for_tensors_when_it_is_made_is_an_argument_of_a_subgraph() -> None:
    class Reads(nn.Module):
        def forward(self, x: Tensor, past: Cache) -> Tensor:
            return x + past.keys

    made = source(Reads(), ((torch.ones(2), Cache(torch.ones(2))), {}))
    (result,) = made.module(torch.ones(3), torch.ones(3))
    assert torch.equal(result, torch.full((3,), 2.0))
