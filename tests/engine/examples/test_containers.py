"""Containers that torch does not know by itself, as inputs and as results of a model."""

import copy
import dataclasses
import functools
import pickle
import types
from collections import UserDict
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from ace_studio.engine.examples.containers import map_opened, register_containers
from ace_studio.engine.examples.leaves import tensor_paths
from ace_studio.engine.flow import Example
from ace_studio.engine.targets.shared.flat_call import FlatCall
from ace_studio.records.tensors import DimVerdict
from tests.engine.capture import captures


@dataclasses.dataclass
class Inner:
    hidden: Tensor


@dataclasses.dataclass
class Scores:
    logits: Tensor
    inner: Inner


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x):
        y = self.linear(x)
        return Scores(y, Inner(y * 2))


@dataclasses.dataclass(frozen=True)
class Batch:
    ids: Tensor
    mask: Tensor
    scale: float = 2.0
    more: Tensor | None = None

    def __post_init__(self):
        assert isinstance(self.ids, Tensor), "a constructor that checks must not stop the trace"


class Pair(NamedTuple):
    ids: Tensor
    mask: Tensor


class Items(dict):
    """A dictionary of the user's own."""


class Wrapped(UserDict):
    """What tokenizers return."""


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 8)

    def forward(self, batch, state):
        has_fields = hasattr(batch, "ids")
        ids, mask = (batch.ids, batch.mask) if has_fields else (batch["ids"], batch["mask"])
        return (self.embed(ids) * mask.unsqueeze(-1)).sum(1) + state[0] + state[1]["h"]


KINDS = {
    "dataclass": Batch,
    "named tuple": Pair,
    "dictionary": dict,
    "own dictionary": Items,
    "mapping": Wrapped,
    "namespace": types.SimpleNamespace,
}


def reader_example(kind, n, t):
    batch = KINDS[kind](ids=torch.arange(n * t).reshape(n, t) % 20, mask=torch.ones(n, t))
    return Example(args=(batch, [torch.randn(n, 8), {"h": torch.randn(n, 8)}]))


def capture(module, examples, rung="export"):
    register_containers([(one.args, dict(one.kwargs)) for one in examples])
    return captures.capture_by(rung, module.eval(), examples)[0]


def test_a_model_that_returns_nested_dataclasses_is_captured_and_gives_them_back():
    captured = capture(Net(), [Example.of(torch.ones(n, 4)) for n in (2, 3)])
    result = FlatCall(captured).unflatten([torch.zeros(2, 3), torch.ones(2, 3)])
    assert isinstance(result, Scores)
    assert isinstance(result.inner, Inner)
    assert result.inner.hidden.sum() == 6


@pytest.mark.parametrize("kind", KINDS)
def test_leaves_of_every_container_are_named_compared_and_dynamic(kind):
    captured = capture(Reader(), [reader_example(kind, 1, 5), reader_example(kind, 3, 7)])
    assert [one.name for one in captured.inputs] == ["batch.ids", "batch.mask", "state.0", "state.1.h"]
    verdicts = [[dim.verdict for dim in one.dims] for one in captured.inputs]
    assert verdicts[0] == verdicts[1] == [DimVerdict.DYNAMIC, DimVerdict.DYNAMIC]
    assert verdicts[2] == verdicts[3] == [DimVerdict.DYNAMIC, DimVerdict.STATIC]
    unseen = reader_example(kind, 4, 6)
    flat = FlatCall(captured).flatten(unseen.args, {})
    assert [one.shape for one in flat] == [one.shape for one in unseen.tensors()]


@pytest.mark.parametrize("rung", ["export-strict", "dynamo", "fx"])
def test_a_dataclass_is_an_input_on_every_rung(rung):
    captured = capture(Reader(), [reader_example("dataclass", 2, 5), reader_example("dataclass", 3, 7)], rung)
    unseen = reader_example("dataclass", 4, 6)
    result = captured.program.module()(*unseen.args)
    torch.testing.assert_close(result, unseen.call(captured.module))


def test_a_value_without_containers_of_its_own_registers_nothing():
    assert not register_containers({"a": [torch.ones(1)]})


def test_a_class_that_cannot_be_made_anew_stays_one_value():
    class Picky(dict):
        def __init__(self, first, second):
            super().__init__(first=first, second=second)

    value = Picky(torch.ones(1), torch.ones(1))
    assert not register_containers(value)
    assert pytree.tree_leaves(value) == [value]


def test_containers_of_the_users_own_open_to_lists_and_pythons_own_stay():
    register_containers(Inner(torch.ones(1)))
    opened = map_opened({"a": Inner(torch.ones(1)), "b": (torch.ones(1),)}, lambda leaf: leaf.numel())
    assert opened == {"a": [1], "b": (1,)}


class Pair:
    """A result of a class of the user's own, with a note that is no tensor."""

    def __init__(self, first: Tensor, rest: list[Tensor]) -> None:
        self.first = first
        self.rest = rest
        self.note = object()

    def total(self) -> Tensor:
        return self.first.sum()


class SlotPair:
    __slots__ = ("first", "rest")

    def __init__(self, first: Tensor, rest: list[Tensor]) -> None:
        self.first = first
        self.rest = rest


@pytest.mark.parametrize("kind", [Pair, SlotPair])
def test_a_model_that_returns_an_object_of_its_own_class_gives_it_back(kind):
    class Gives(Net):
        def forward(self, x):
            return kind(self.linear(x), [x + 1])

    captured, _ = captures.capture(Gives(), [torch.randn(size, 4) for size in (2, 3)])
    result = FlatCall(captured).unflatten([torch.ones(2, 3), torch.zeros(2, 4)])
    assert type(result) is kind and result.first.sum() == 6 and result.rest[0].sum() == 0
    assert kind is SlotPair or result.total() == 6


class Store:
    """A cache like those of libraries: layers of objects with tensors and settings."""

    class Layer:
        def __init__(self, keys: Tensor) -> None:
            self.keys, self.is_ready, self.device = keys, True, keys.device

    def __init__(self, keys: Tensor) -> None:
        self.layers = [Store.Layer(keys)]
        self.kind = Store.Layer


def test_an_object_with_tensors_is_an_input_whose_sizes_are_free():
    class Step(Net):
        def forward(self, x, cache):
            keys = torch.cat([cache.layers[0].keys, self.linear(x)])
            return keys.sum(0)

    examples = [Example.of((torch.randn(1, 4), Store(torch.randn(size, 3)))) for size in (2, 5)]
    register_containers([example.args for example in examples])
    captured, report = captures.capture(Step(), examples)
    assert report.rung == "export"
    assert [one.name for one in captured.inputs] == ["x", "cache.layers.0.keys"]
    assert captured.inputs[1].dims[0].verdict is DimVerdict.DYNAMIC
    assert len(FlatCall(captured).flatten(examples[1].args, {})) == 2


def test_objects_without_tensors_and_modules_stay_single_values():
    assert not register_containers([types.MethodType(str.upper, "a"), nn.Linear(2, 2), Path()])


@dataclasses.dataclass
class Noted:
    x: Tensor


@pytest.mark.parametrize(
    "make",
    [Store.Layer, Noted, lambda x: Items(x=x), lambda x: Wrapped(x=x),
     lambda x: types.SimpleNamespace(x=x)],
    ids=["object", "dataclass", "dict", "mapping", "namespace"],
)  # fmt: skip
def test_a_rebuilt_container_has_the_other_attributes_of_its_own_object(make):
    first, second = make(torch.zeros(2)), make(torch.ones(2))
    if not isinstance(first, types.SimpleNamespace):  # whose attributes are all items
        first.mode, second.mode = 1, 2
        first.table = second.table = {"kept": True}
    register_containers([first, second])
    flat = [pytree.tree_flatten(one) for one in (first, second)]
    again = [pytree.tree_unflatten([leaf + 1 if isinstance(leaf, Tensor) else leaf for leaf in leaves], spec)
             for leaves, spec in flat]  # fmt: skip
    assert flat[0][1] == flat[1][1], "they have the same structure"
    assert [type(one) for one in again] == [type(first)] * 2
    assert [float(pytree.tree_leaves(one)[0].sum()) for one in again] == [2.0, 4.0]
    if hasattr(first, "mode"):
        assert [one.mode for one in again] == [1, 2]
        assert again[0].table is first.table


def test_a_structure_that_was_copied_keeps_attributes_and_one_that_was_saved_can_be_read():
    value = Store.Layer(torch.zeros(2))
    value.mode, value.handle = 3, lambda: None  # which cannot be saved
    register_containers(value)
    leaves, spec = pytree.tree_flatten(value)
    assert pytree.tree_unflatten(leaves, copy.copy(spec)).mode == 3
    assert copy.deepcopy(spec.context) is spec.context
    assert b"handle" not in pickle.dumps(spec)
    assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec


class Cached:
    def __init__(self, x: Tensor) -> None:
        self.x = x

    @functools.cached_property
    def rows(self) -> int:
        return len(self.x)


def test_a_rebuilt_object_computes_its_cached_properties_anew():
    value = Cached(torch.zeros(3))
    assert value.rows == 3
    register_containers(value)
    _, spec = pytree.tree_flatten(value)
    assert pytree.tree_unflatten([torch.zeros(5)], spec).rows == 5


class Registered(dict):
    """A result that its library registered, as diffusers does, without names of its items."""


class RegisteredPair:
    def __init__(self, first: Tensor, second: Tensor) -> None:
        self.parts = [first, second]


for one, flatten, unflatten in (
    (
        Registered,
        lambda value: (list(value.values()), list(value)),
        lambda items, keys: Registered(dict(zip(keys, items, strict=True))),
    ),
    (RegisteredPair, lambda value: (value.parts, None), lambda items, _none: RegisteredPair(*items)),
):
    pytree.register_pytree_node(one, flatten, unflatten, serialized_type_name=f"tests.{one.__name__}")


@pytest.mark.parametrize(
    ("make", "paths"),
    [(lambda x: Registered(sample=x, more=x + 1), ["sample", "more"]), (lambda x: RegisteredPair(x, -x), ["0", "1"])],
)
def test_items_that_a_library_registered_without_names_have_names(make, paths):
    found = make(torch.ones(2))
    assert not register_containers(found)
    assert [path for path, _ in tensor_paths(found)] == paths
    torch.testing.assert_close(pytree.tree_leaves(found), [tensor for _, tensor in tensor_paths(found)])
