"""Headers of safetensors files: read without loading a tensor, and refused if they lie."""

import struct
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from ace_studio.engine.load.safetensors_header import looks_like_safetensors, read_header
from ace_studio.records.errors import AceError, ErrorCode


def write(path: Path, header: bytes, *, declared: int | None = None, data: bytes = b"") -> Path:
    path.write_bytes(struct.pack("<Q", len(header) if declared is None else declared) + header + data)
    return path


def refusal(path: Path) -> str:
    with pytest.raises(AceError) as caught:
        read_header(path)
    assert caught.value.problem.code is ErrorCode.BAD_FILE
    assert caught.value.problem.why
    return caught.value.problem.what


def test_tensors_are_listed_with_torchs_names_and_with_the_metadata(tmp_path):
    save_file({"a.weight": torch.zeros(2, 3), "b": torch.zeros(4, dtype=torch.bfloat16)}, tmp_path / "w", {"by": "me"})
    tensors, metadata = read_header(tmp_path / "w")
    assert {(one.name, one.dtype, one.shape) for one in tensors} == {
        ("a.weight", "float32", (2, 3)),
        ("b", "bfloat16", (4,)),
    }
    assert metadata == {"by": "me"}


def test_tensors_come_in_the_order_of_the_file(tmp_path):
    header = (
        b'{"z":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"a":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}}'
    )
    assert [one.name for one in read_header(write(tmp_path / "w", header, data=b"1234"))[0]] == ["z", "a"]


def test_a_type_that_torch_has_under_another_name_is_named_as_torch_does(tmp_path):
    header = b'{"a":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]}}'
    (tensor,) = read_header(write(tmp_path / "w", header, data=b"1234"))[0]
    assert tensor.dtype == str(torch.float8_e4m3fn).removeprefix("torch.")


@pytest.mark.parametrize(
    "header",
    [
        b'{"a":{"dtype":"F32","shape":[9],"data_offsets":[0,4]}}',
        b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}',
        b'{"a":{"dtype":"F99","shape":[1],"data_offsets":[0,4]}}',
        b'{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}',
        b'{"a":{"dtype":"F32","shape":[true],"data_offsets":[0,4]}}',
        b'{"a":{"dtype":"F32","shape":[4611686018427387905],"data_offsets":[0,4]}}',
        b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}',
        b'{"a":7}',
        b"[1]",
        b"[" * 10_000,
        b"{nonsense",
        b"{}",
    ],
)
def test_a_header_that_lies_is_refused(tmp_path, header):
    assert "damaged or incomplete safetensors" in refusal(write(tmp_path / "w", header, data=b"\0" * 4))


@pytest.mark.parametrize("declared", [0, 1 << 20, 1 << 40, (1 << 64) - 1])
def test_a_header_length_beyond_the_file_is_refused_without_allocating(tmp_path, declared):
    assert "safetensors" in refusal(write(tmp_path / "w", b"{}", declared=declared))


@pytest.mark.parametrize(
    ("head", "is_one"),
    [
        (struct.pack("<Q", 2) + b"{}", True),
        (struct.pack("<Q", 1 << 40) + b"{}", False),
        (struct.pack("<Q", 2) + b"[]", False),
        (b"{}", False),
    ],
)
def test_a_plausible_length_and_a_brace_are_the_mark_of_the_format(head, is_one):
    assert looks_like_safetensors(head) is is_one
