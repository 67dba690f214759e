"""Caught inputs on disk come back as they were, and reading them runs nothing."""

import dataclasses
import sys
import types
from collections import OrderedDict, UserDict
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from ace_studio.engine.examples.caught import (
    CallWriter,
    CaughtFiles,
    CaughtInputs,
    CaughtValue,
    NotStorableError,
    read_caught,
)
from ace_studio.engine.flow import Example
from ace_studio.records.errors import AceError, ErrorCode


@dataclasses.dataclass
class Batch:
    ids: Tensor
    scale: float = 1.0


class Pair(NamedTuple):
    x: Tensor
    y: Tensor


class Items(dict):
    pass


class Wrapped(UserDict):
    pass


class Loud(dict):
    """A class whose constructor must not be called by the content of a file."""

    def __init__(self, *args):
        raise AssertionError("called")


@pytest.fixture(autouse=True)
def this_module_is_loaded(monkeypatch):
    module = types.ModuleType("caught_classes")
    for kind in (Batch, Pair, Items, Wrapped, Loud):
        setattr(module, kind.__name__, kind)
        monkeypatch.setattr(kind, "__module__", "caught_classes")
    monkeypatch.setitem(sys.modules, "caught_classes", module)


def round_trip(folder: Path, *args: object, **kwargs: object) -> Example:
    files = CaughtFiles.at(folder)
    writer = CallWriter("0")
    call = writer.call(args, kwargs)
    save_file(writer.tensors, files.tensors)
    files.structure.write_bytes(msgspec.json.encode(CaughtInputs(calls=[call])))
    (example,) = read_caught(folder, read_tensors=load_file)
    return example


def test_nesting_plain_values_and_numbers_come_back(tmp_path):
    x = torch.randn(2, 3)
    example = round_trip(
        tmp_path, x, [1, (2.5, "a")], {"k": x.half(), 3: None}, flag=True, low=float("-inf"), dtype=torch.float16
    )
    assert torch.equal(example.args[0], x)
    assert example.args[1] == [1, (2.5, "a")]
    assert list(example.args[2]) == ["k", 3]
    assert example.args[2]["k"].dtype is torch.float16
    assert example.kwargs == {"flag": True, "low": float("-inf"), "dtype": torch.float16}


@pytest.mark.parametrize("kind", [Items, Wrapped, OrderedDict])
def test_dictionaries_of_other_classes_come_back_as_such(tmp_path, kind):
    (value,) = round_trip(tmp_path, kind({"x": torch.ones(2)})).args
    assert type(value) is kind
    assert torch.equal(value["x"], torch.ones(2))


def test_dataclasses_and_named_tuples_come_back_if_their_module_is_loaded(tmp_path):
    batch, pair = round_trip(tmp_path, Batch(torch.ones(2), 3.0), Pair(torch.zeros(1), torch.ones(1))).args
    assert isinstance(batch, Batch)
    assert (batch.ids.numel(), batch.scale) == (2, 3.0)
    assert isinstance(pair, Pair)
    assert pair.y.item() == 1


def test_without_their_module_they_hold_the_same_by_the_same_names(tmp_path, monkeypatch):
    args = (Batch(torch.ones(2)), Pair(torch.zeros(1), torch.ones(1)))
    monkeypatch.setattr(Batch, "__module__", "gone")
    monkeypatch.setattr(Pair, "__module__", "gone")
    batch, pair = round_trip(tmp_path, *args).args
    assert isinstance(batch, types.SimpleNamespace)
    assert batch.scale == 1.0
    assert isinstance(pair, tuple)


@pytest.mark.parametrize("kind", ["caught_classes:Loud", "subprocess:Popen", "pathlib:Path", "os:system"])
def test_no_class_that_a_file_names_is_called(tmp_path, kind):
    part = CaughtValue(items=[CaughtValue(value="a file")], keys=["args"], kind=kind)
    files = CaughtFiles.at(tmp_path)
    save_file({"0.0": torch.ones(1)}, files.tensors)
    files.structure.write_bytes(msgspec.json.encode(CaughtInputs(calls=[msgspec.convert({"args": [part]}, dict)])))
    (example,) = read_caught(tmp_path, read_tensors=load_file)
    value = example.args[0]
    assert isinstance(value, types.SimpleNamespace | dict)
    assert (value["args"] if isinstance(value, dict) else value.args) == "a file"


def test_what_no_file_holds_is_refused_by_name():
    with pytest.raises(NotStorableError, match="'1' is of the class object"):
        CallWriter("0").call((torch.ones(1), object()), {})
    with pytest.raises(NotStorableError, match="kind that no file holds"):
        CallWriter("0").call((torch.ones(2, 2).to_sparse(),), {})


def test_a_kept_tensor_does_not_follow_the_one_it_came_from():
    x = torch.zeros(3)
    writer = CallWriter("0")
    writer.call((x,), {})
    x += 1
    assert writer.tensors["0.0"].sum() == 0


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'{"calls": [{"args": [{"tensor": "9.9"}]}]}', b'{"format": 99, "calls": []}',
     b'{"calls": [{"args": [{"dtype": "load"}]}]}', b'{"calls": [{"args": [{"items": [{}], "keys": ["a", "b"]}]}]}',
     b'{"calls": [{"args": ' + b'[{"items": ' * 5000 + b"]}"],
)  # fmt: skip
def test_a_damaged_file_is_told_and_never_a_crash(tmp_path, content):
    save_file({"0.0": torch.ones(1)}, tmp_path / "inputs.safetensors")
    (tmp_path / "inputs.json").write_bytes(content)
    with pytest.raises(AceError) as caught:
        read_caught(tmp_path / "inputs.json", read_tensors=load_file)
    assert caught.value.problem.code is ErrorCode.BAD_FILE


def test_a_folder_without_caught_inputs_says_what_to_name(tmp_path):
    with pytest.raises(AceError, match="no caught inputs") as caught:
        read_caught(tmp_path, read_tensors=load_file)
    assert caught.value.problem.code is ErrorCode.NOT_FOUND
