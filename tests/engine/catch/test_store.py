"""Caught calls as files and as rows of the shape table."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from ace_studio.engine.catch import CallRecorder, caught_rows, store_calls
from ace_studio.engine.examples.caught import read_caught
from ace_studio.records.errors import AceError, ErrorCode


class Net(nn.Module):
    def forward(self, batch: dict[str, Tensor], scale: float = 1.0) -> Tensor:
        return batch["ids"] * scale


def caught(*calls: tuple[tuple, dict]):
    recorder, net = CallRecorder(wanted="", calls=8), Net()
    with recorder.listening():
        for args, kwargs in calls:
            net(*args, **kwargs)
    shelf = recorder.chosen()
    assert shelf is not None
    return shelf.kept


def test_stored_calls_are_read_again(tmp_path: Path) -> None:
    kept = caught((({"ids": torch.arange(3)},), {"scale": 2.0}), (({"ids": torch.arange(5)},), {"scale": 2.0}))
    files = store_calls(kept, module=Net(), script=Path("train.py"), output=tmp_path / "new")
    assert files.structure == tmp_path / "new" / "inputs.json"
    first, second = read_caught(tmp_path / "new", read_tensors=load_file)
    assert torch.equal(first.args[0]["ids"], torch.arange(3)) and first.kwargs == {"scale": 2.0}
    assert torch.equal(second.args[0]["ids"], torch.arange(5))


def test_calls_of_tensors_alone_are_rows_and_calls_with_plain_values_are_not() -> None:
    tensors = Path("inputs.safetensors")
    plain = caught_rows(caught((({"ids": torch.arange(3)},), {})), module=Net(), tensors=tensors)
    assert plain[0]["batch.ids"].shape == (3,)
    assert plain[0]["batch.ids"].dtype == "int64"
    assert caught_rows(caught((({"ids": torch.arange(3)},), {"scale": 2.0})), module=Net(), tensors=tensors) == ()


def test_a_place_that_cannot_be_written_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(AceError) as error:
        store_calls([], module=Net(), script=Path("train.py"), output=tmp_path / "file" / "folder")
    assert error.value.problem.code is ErrorCode.USAGE
