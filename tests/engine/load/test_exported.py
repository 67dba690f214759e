"""An exported program keeps the sizes that it declares free."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from ace_studio.engine.load.exported import examples_of_program, input_notes


class Scaled(nn.Module):
    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        return x * mask[:, None]


def exported(batch: Any) -> ExportedProgram:
    shapes = {"x": {0: batch}, "mask": {0: batch}} if batch is not None else None
    with torch.no_grad():
        return torch.export.export(Scaled(), (torch.ones(3, 8), torch.ones(3)), dynamic_shapes=shapes)


def stored(program: ExportedProgram) -> bytes:
    file = io.BytesIO()
    torch.export.save(program, file)
    with zipfile.ZipFile(file) as archive:
        return next(archive.read(name) for name in archive.namelist() if name.endswith("models/model.json"))


@pytest.mark.parametrize(
    ("batch", "words"), [(Dim.DYNAMIC, "from 2 up"), (Dim("b"), "from 1 up"), (Dim("b", min=3, max=5), "from 3 to 5")]
)
def test_a_free_size_is_named_with_its_range_and_a_second_example_shows_it(batch: Any, words: str) -> None:
    program = exported(batch)
    assert input_notes(stored(program)) == (f"input x: s0 x 8, s0 {words}", "input mask: s0")
    first, other = examples_of_program(program)
    assert first.shapes() == ((3, 8), (3,))
    size = other.shapes()[0][0]
    assert size not in (3, 1)
    assert other.shapes() == ((size, 8), (size,))
    assert size <= 5 or "to 5" not in words


def test_a_program_of_fixed_sizes_has_the_one_example_that_it_stores() -> None:
    program = exported(None)
    assert input_notes(stored(program)) == ("input x: 3 x 8", "input mask: 3")
    assert [one.shapes() for one in examples_of_program(program)] == [((3, 8), (3,))]


def test_a_file_written_in_another_way_is_no_error() -> None:
    assert input_notes(b"{}") == input_notes(b"[1]") == input_notes(b"\x00") == ()
