"""Calls that go to another process through files."""

from pathlib import Path

import pytest
import torch

from ace_studio.engine.examples.stored_calls import (
    CannotLeaveError,
    read_tensors,
    store_call,
    stored_example,
    write_tensors,
)
from ace_studio.engine.flow import Example


def test_a_nested_call_comes_back_as_it_was(tmp_path: Path) -> None:
    call = Example(args=(torch.arange(3), [torch.ones(2, 2), 4]), kwargs={"scale": 0.5, "mask": {"m": torch.zeros(1)}})
    write_tensors(tmp_path / "calls.safetensors", [call.tensors()])
    back = stored_example(store_call(call), read_tensors(tmp_path / "calls.safetensors", 1)[0])
    assert torch.equal(back.args[0], call.args[0])
    assert torch.equal(back.args[1][0], call.args[1][0])
    assert back.args[1][1] == 4
    assert back.kwargs["scale"] == 0.5
    assert torch.equal(back.kwargs["mask"]["m"], torch.zeros(1))


def test_more_than_ten_tensors_keep_their_order_and_a_call_without_any_keeps_its_place(tmp_path: Path) -> None:
    calls = [[torch.tensor(float(at)) for at in range(12)], [], [torch.tensor(99.0)]]
    write_tensors(tmp_path / "calls.safetensors", calls)
    found = read_tensors(tmp_path / "calls.safetensors", 3)
    assert [[value.item() for value in flat] for flat in found] == [[float(at) for at in range(12)], [], [99.0]]


class _Own:
    """A type that no other process has."""


@pytest.mark.parametrize("argument", [_Own(), {1, 2}])
def test_what_is_no_data_cannot_leave(argument: object) -> None:
    with pytest.raises(CannotLeaveError, match="neither a tensor nor a plain value"):
        store_call(Example(args=(argument,)))
