"""Tensors come out of files as they went in, and files that lie are refused before anything is allocated."""

import io
import zipfile

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import nn

from ace_studio.engine.load import inspect_file, read_state_dict, read_tensor
from ace_studio.engine.load.tensors import find_state_dicts
from ace_studio.records.errors import AceError, ErrorCode
from tests.engine.load.samples import Payload, check_wording


def refusal(read, *args, **kwargs):
    with pytest.raises(AceError) as caught:
        read(*args, **kwargs)
    check_wording(caught.value)
    return caught.value.problem


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "uint8", "bool", ">f4", "complex64"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_numpy_arrays_of_every_kind(tmp_path, dtype, order):
    array = np.asarray(np.arange(6).reshape(2, 3), dtype=dtype, order=order)
    np.save(tmp_path / "a.npy", array)
    np.savez(tmp_path / "a.npz", x=array)
    np.savez_compressed(tmp_path / "b.npz", x=array, y=array)
    for tensor in (
        read_tensor(tmp_path / "a.npy"),
        read_tensor(tmp_path / "a.npz"),
        read_tensor(tmp_path / "b.npz", name="y"),
        read_tensor(tmp_path / "b.npz:x"),
    ):
        assert tensor.is_contiguous()
        np.testing.assert_array_equal(tensor.numpy(), array)


def test_a_scalar_and_an_empty_array(tmp_path):
    for array in (np.float32(3), np.zeros((0, 4), np.float32)):
        np.save(tmp_path / "a.npy", array)
        assert tuple(read_tensor(tmp_path / "a.npy").shape) == array.shape


def test_tensors_of_torch_and_safetensors(tmp_path):
    value = torch.arange(6.0).reshape(2, 3).bfloat16()
    torch.save(value, tmp_path / "one.pt")
    torch.save({"a": value, "n": 3}, tmp_path / "named.pt")
    save_file({"a": value, "b": value + 1}, tmp_path / "two.safetensors")
    assert torch.equal(read_tensor(tmp_path / "one.pt"), value)
    assert torch.equal(read_tensor(tmp_path / "named.pt"), value)
    assert torch.equal(read_tensor(tmp_path / "two.safetensors", name="b"), value + 1)


def test_several_tensors_without_a_name_list_them(tmp_path):
    save_file({"a": torch.zeros(1), "b": torch.zeros(1)}, tmp_path / "two.safetensors")
    problem = refusal(read_tensor, tmp_path / "two.safetensors")
    assert problem.code is ErrorCode.NOT_FOUND
    assert "a, b" in problem.why
    assert "two.safetensors:a" in problem.remedy
    assert "'c'" in refusal(read_tensor, tmp_path / "two.safetensors", name="c").what


def test_objects_in_arrays_are_never_unpickled(tmp_path):
    mark = tmp_path / "mark"
    np.save(tmp_path / "a.npy", np.array([Payload(mark)], dtype=object), allow_pickle=True)
    assert "Python objects" in refusal(read_tensor, tmp_path / "a.npy").what
    torch.save(Payload(mark), tmp_path / "a.pt")
    assert "mkdir" in refusal(read_tensor, tmp_path / "a.pt").why
    assert not mark.exists()


def test_arrays_that_no_tensor_can_hold_are_told(tmp_path):
    np.save(tmp_path / "a.npy", np.array(["text"]))
    assert refusal(read_tensor, tmp_path / "a.npy").code is ErrorCode.BAD_FILE
    np.save(tmp_path / "b.npy", np.zeros(2, dtype=[("a", "f4"), ("b", "i4")]))
    assert refusal(read_tensor, tmp_path / "b.npy").code is ErrorCode.BAD_FILE


def test_a_header_that_declares_terabytes_is_refused(tmp_path):
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f4", "fortran_order": False, "shape": (10**12,)})
    (tmp_path / "a.npy").write_bytes(stream.getvalue())
    assert "4000000000000 bytes" in refusal(read_tensor, tmp_path / "a.npy").why


def test_a_view_that_claims_terabytes_is_refused(tmp_path):
    torch.save(torch.zeros(1).expand(10**12), tmp_path / "a.pt")
    assert "claims 4000000000000 bytes" in refusal(read_tensor, tmp_path / "a.pt").why
    torch.save(torch.zeros(4).expand(100, 4), tmp_path / "fine.pt")
    assert read_tensor(tmp_path / "fine.pt").shape == (100, 4)


def test_changed_numbers_are_found_by_their_checksum(tmp_path):
    """torch itself would load them in silence."""
    torch.save({"a": torch.full((100,), 7.0)}, tmp_path / "a.pt")
    content = bytearray((tmp_path / "a.pt").read_bytes())
    content[content.index(b"\x00\x00\xe0\x40" * 100) + 8] ^= 0xFF
    (tmp_path / "a.pt").write_bytes(content)
    assert "checksum" in refusal(read_state_dict, tmp_path / "a.pt").what
    torch.load(tmp_path / "a.pt", weights_only=True)  # noqa: TID251 - shows why the check is needed


def test_the_usual_wrappings_are_taken_off():
    weights = {"a": torch.zeros(1)}
    for wrapped in (
        weights,
        {"state_dict": weights, "epoch": 3},
        {"model": weights, "lr": torch.tensor(0.1)},
        {"checkpoint": 1, "module": {"state_dict": weights}},
    ):
        assert find_state_dicts(wrapped)[0].tensors == weights
    for nothing in (None, 3, {}, {"epoch": 3}, [torch.zeros(1)], {"a": {"b": {"c": 1}}}):
        assert not find_state_dicts(nothing)


def test_a_safetensors_header_whose_length_looks_like_a_pickle_is_read(tmp_path):
    for length in range(560, 640, 8):
        save_file({"a" * length: torch.ones(2)}, tmp_path / "a.safetensors")
        if (tmp_path / "a.safetensors").read_bytes().startswith(b"\x80\x02"):
            break
    else:
        raise AssertionError("no header had 640 bytes")
    assert read_tensor(tmp_path / "a.safetensors").tolist() == [1, 1]
    assert inspect_file(tmp_path / "a.safetensors").kind == "safetensors"


def test_a_file_without_weights_says_so(tmp_path):
    torch.save({"epoch": 3}, tmp_path / "a.pt")
    assert "no state dict" in refusal(read_state_dict, tmp_path / "a.pt").what


@given(
    st.dictionaries(st.text(min_size=1, max_size=8), st.lists(st.integers(0, 3), max_size=3), min_size=1, max_size=4)
)
@settings(max_examples=10, deadline=None, derandomize=True)
def test_any_state_dict_survives_both_formats(tmp_path_factory, shapes):
    folder = tmp_path_factory.mktemp("weights")
    weights = {name: torch.randn(shape) for name, shape in shapes.items()}
    torch.save(weights, folder / "a.pt")
    save_file(weights, folder / "a.safetensors")
    for read in (read_state_dict(folder / "a.pt"), read_state_dict(folder / "a.safetensors")):
        assert read.keys() == weights.keys()
        assert all(torch.equal(read[name], weights[name]) for name in weights)


def test_parameters_and_buffers_of_a_module_are_read(tmp_path):
    module = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2))
    torch.save(module.state_dict(), tmp_path / "a.pt")
    assert set(read_state_dict(tmp_path / "a.pt")) == set(module.state_dict())


def laughs(depth=40):
    """Lists of which each holds the next one twice: two to the power of their number leaves in a kilobyte."""
    nested = [torch.zeros(1)]
    for _ in range(depth):
        nested = [nested, nested]
    return nested


def test_lists_that_share_members_without_end_are_refused_at_once(tmp_path):
    torch.save(laughs(), tmp_path / "laughs.pt")
    tables = {"w": torch.zeros(1)}
    for _ in range(40):
        tables = {"a": tables, "b": tables}
    torch.save(tables, tmp_path / "tables.pt")
    for name in ("laughs.pt", "tables.pt"):
        for read in (read_tensor, read_state_dict):
            problem = refusal(read, tmp_path / name)
            assert problem.code is ErrorCode.BAD_FILE and "contain themselves or each other" in problem.what


def test_weights_that_are_kept_twice_are_read(tmp_path):
    weights = {f"w{index}": torch.zeros(1) for index in range(1000)}
    torch.save({"state_dict": weights, "model": weights}, tmp_path / "w.pt")
    assert len(read_state_dict(tmp_path / "w.pt")) == 1000


def with_version(path, version):
    """The same container, which says that it has this version."""
    with zipfile.ZipFile(path) as archive:
        content = {info.filename: archive.read(info) for info in archive.infolist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, held in content.items():
            archive.writestr(name, f"{version}\n" if name.endswith("/version") else held)


def test_a_container_of_an_unknown_version_is_not_called_damaged(tmp_path):
    torch.save(nn.Linear(2, 2).state_dict(), tmp_path / "w.pt")
    with_version(tmp_path / "w.pt", 99)
    problem = refusal(read_state_dict, tmp_path / "w.pt")
    assert "version 99" in problem.what and torch.__version__ in problem.what and "damaged" not in str(problem)
    assert "update torch" in problem.remedy


def test_an_array_of_an_unknown_version_is_not_called_damaged(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros(3))
    content = bytearray((tmp_path / "a.npy").read_bytes())
    content[6] = 99
    (tmp_path / "a.npy").write_bytes(content)
    assert "version 99.0" in refusal(read_tensor, tmp_path / "a.npy").what
