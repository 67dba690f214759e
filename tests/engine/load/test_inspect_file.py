"""What a file is, found without running it; what it really is, when it is not what it is called."""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections import OrderedDict

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from ace_studio.engine.load import LOADERS, inspect_file
from ace_studio.records.errors import AceError, ErrorCode
from tests.engine.load.samples import (
    Payload,
    Plain,
    check_wording,
    write_bare_pickle,
    write_net,
    write_pt2,
    write_pt2_with_payload,
)


def refusal(path) -> str:
    with pytest.raises(AceError) as caught:
        inspect_file(path)
    check_wording(caught.value)
    return caught.value.problem.as_text()


def test_python_source_lists_its_callables_and_needs_trust(tmp_path):
    path = write_net(tmp_path)
    report = inspect_file(path)
    assert (report.kind, report.trust) == ("python", "code")
    assert [entry.name for entry in report.entries][:2] == ["Net", "make_model"]
    assert report.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert report.size_bytes == path.stat().st_size
    assert any("torch" in line for line in report.would_run)


def test_safetensors_lists_its_tensors_and_is_data(tmp_path):
    save_file({"a": torch.zeros(2, 3), "b": torch.zeros(1, dtype=torch.bfloat16)}, tmp_path / "w.safetensors")
    report = inspect_file(tmp_path / "w.safetensors")
    assert (report.kind, report.trust, report.would_run) == ("safetensors", "data", ())
    assert {(tensor.name, tensor.dtype, tensor.shape) for tensor in report.tensors} == {
        ("a", "float32", (2, 3)),
        ("b", "bfloat16", (1,)),
    }


@pytest.mark.parametrize("is_zip", [True, False])
def test_a_state_dict_is_data_and_a_whole_module_is_code(tmp_path, is_zip):
    torch.save(Plain().state_dict(), tmp_path / "w.pt", _use_new_zipfile_serialization=is_zip)
    torch.save(Plain(), tmp_path / "m.pt", _use_new_zipfile_serialization=is_zip)
    assert (inspect_file(tmp_path / "w.pt").kind, inspect_file(tmp_path / "w.pt").trust) == ("state-dict", "data")
    report = inspect_file(tmp_path / "m.pt")
    assert (report.kind, report.trust) == ("pickle-module", "code")
    assert any("samples.Plain" in line for line in report.would_run)


def test_the_names_that_unpickling_would_call_agree_with_torch(tmp_path):
    torch.save(Plain(), tmp_path / "m.pt")
    ours = {line.removeprefix("imports and may call ") for line in inspect_file(tmp_path / "m.pt").would_run}
    assert ours == set(torch.serialization.get_unsafe_globals_in_checkpoint(tmp_path / "m.pt"))


def test_a_state_dict_of_every_element_type_is_data(tmp_path):
    values = {str(dtype): torch.zeros(2).to(dtype) for dtype in (torch.float16, torch.bfloat16, torch.int8, torch.bool)}
    values["parameter"] = torch.nn.Parameter(torch.zeros(1))
    values["sparse"] = torch.zeros(2, 2).to_sparse()
    torch.save({"state_dict": values, "epoch": 3, "dtype": torch.float32}, tmp_path / "w.pt")
    assert inspect_file(tmp_path / "w.pt").kind == "state-dict"


def test_the_tensors_of_a_state_dict_are_listed_without_reading_them(tmp_path):
    weights = {
        "a.w": torch.zeros(2, 3),
        "h": torch.zeros(4).half(),
        "u": torch.zeros(1).to(torch.uint16),
        "p": torch.nn.Parameter(torch.zeros(())),
    }
    torch.save({"epoch": 1, "state_dict": OrderedDict(weights)}, tmp_path / "w.pt")
    assert {(tensor.name, tensor.dtype, tensor.shape) for tensor in inspect_file(tmp_path / "w.pt").tensors} == {
        ("state_dict.a.w", "float32", (2, 3)),
        ("state_dict.h", "float16", (4,)),
        ("state_dict.u", "uint16", (1,)),
        ("state_dict.p", "float32", ()),
    }


def test_a_memo_number_that_would_ask_for_gigabytes_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "w.pt", "w") as archive:
        archive.writestr("m/data.pkl", b"\x80\x02Nr\xff\xff\xff\x7f.")
    assert "damaged or incomplete pickle" in refusal(tmp_path / "w.pt")


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_a_pickle_that_would_run_code_says_what_and_runs_nothing(tmp_path, protocol):
    mark = tmp_path / "mark"
    torch.save(Payload(mark), tmp_path / "evil.pt", pickle_protocol=protocol)
    write_bare_pickle(tmp_path / "bare.pt", Payload(mark))
    for name in ("evil.pt", "bare.pt"):
        report = inspect_file(tmp_path / name)
        assert report.trust == "code"
        assert any("mkdir" in line for line in report.would_run)
    assert not mark.exists()


def test_an_exported_program_is_code_and_names_the_pickle_inside_it(tmp_path):
    mark = tmp_path / "mark"
    assert (report := inspect_file(write_pt2(tmp_path / "m.pt2"))).kind == "pt2"
    assert report.trust == "code"
    evil = inspect_file(write_pt2_with_payload(tmp_path / "evil.pt2", mark))
    assert any("mkdir" in line for line in evil.would_run)
    assert not mark.exists()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch.jit is deprecated; its files live on
def test_torchscript_is_told_from_a_pickle(tmp_path):
    torch.jit.trace(Plain(), torch.zeros(1, 2)).save(tmp_path / "m.pt")
    assert inspect_file(tmp_path / "m.pt").kind == "torchscript"


def test_onnx_is_counted_without_the_onnx_package(tmp_path):
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    value = helper.make_tensor_value_info("x", 1, [1])
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Relu", ["y"], ["z"])]
    graph = helper.make_graph(nodes, "g", [value], [helper.make_tensor_value_info("z", 1, [1])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], producer_name="me")
    onnx.save(model, tmp_path / "m.onnx")
    (tmp_path / "nameless").write_bytes((tmp_path / "m.onnx").read_bytes())
    report = inspect_file(tmp_path / "m.onnx")
    assert (report.kind, report.trust) == ("onnx", "data")
    assert "2 ops, ai.onnx 18" in report.notes[0]
    assert "2 x Relu" in report.notes
    assert inspect_file(tmp_path / "nameless").kind == "onnx"


def test_a_hugging_face_folder_is_recognised(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "nobody-has-it", "auto_map": {"AutoModel": "m.M"}}')
    report = inspect_file(tmp_path)
    assert report.kind == "huggingface-code"
    assert any("nobody-has-it" in note for note in report.notes)
    assert any("Python code" in note for note in report.notes)
    (tmp_path / "config.json").write_text('{"model_type": "bert", "auto_map": {"AutoModel": "m.M"}}')
    assert inspect_file(tmp_path).kind == "huggingface"  # transformers has it; the folder's code is not needed


def test_content_counts_before_the_name(tmp_path):
    save_file({"a": torch.zeros(1)}, tmp_path / "w.pt")
    torch.save({"a": torch.zeros(1)}, tmp_path / "w.safetensors")
    assert inspect_file(tmp_path / "w.pt").kind == "safetensors"
    report = inspect_file(tmp_path / "w.safetensors")
    assert report.kind == "state-dict"
    assert "its name ends in '.safetensors'" in report.notes[0]


HTML = b"<!DOCTYPE html>\n<html><head><title>Sign in</title></head></html>"
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 1234\n"


@pytest.mark.parametrize("name", ["m.pt", "m.safetensors", "m.pt2", "m.onnx", "m.py", "m.pth"])
@pytest.mark.parametrize(
    ("content", "words"),
    [(HTML, "web page"), (b"  \n" + HTML.lower(), "Sign in".lower()), (LFS, "1234 bytes"), (b"", "is empty")],
    ids=["html", "spaces before html", "lfs", "empty"],
)
def test_what_often_lies_where_a_model_should_be_is_named(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    assert words in refusal(tmp_path / name).replace("Sign in", "sign in")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"hello world\nthis is text", "plain text"),
        (b"\x1f\x8b" + b"\0" * 100, "gzip"),
        (b"\0" * 257 + b"ustar" + b"\0" * 300, "tar archive"),
        (b"\x89HDF\r\n\x1a\n" + b"\0" * 9, "HDF5"),
        (b"\xff\xfe\xfd" * 100, "no known format"),
        (b"PK\x03\x04" + b"\0" * 100, "damaged or incomplete zip"),
        (b"\x80\x02\x8a", "damaged or incomplete pickle"),
    ],
)
def test_a_file_named_pt_that_is_something_else_is_told_what_it_is(tmp_path, content, words):
    (tmp_path / "m.pt").write_bytes(content)
    assert words in refusal(tmp_path / "m.pt")


def test_a_cut_zip_and_a_changed_byte_are_told(tmp_path):
    torch.save(Plain().state_dict(), tmp_path / "w.pt")
    whole = (tmp_path / "w.pt").read_bytes()
    (tmp_path / "cut.pt").write_bytes(whole[: len(whole) // 2])
    assert "incomplete zip" in refusal(tmp_path / "cut.pt")
    place = whole.index(b"linear.weight")
    (tmp_path / "changed.pt").write_bytes(whole[:place] + b"Linear" + whole[place + 6 :])
    assert "checksum" in refusal(tmp_path / "changed.pt")


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path):
    with zipfile.ZipFile(tmp_path / "bomb.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("m/data.pkl", b"\0" * 200_000_000)
    assert "would unpack to 200000000 bytes" in refusal(tmp_path / "bomb.pt")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_parts_of_one_name_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "twice.pt", "w") as archive:
        archive.writestr("m/data.pkl", b"\x80\x02N.")
        archive.writestr("m/data.pkl", b"\x80\x02N.")
    assert "readers disagree" in refusal(tmp_path / "twice.pt")


def test_zips_that_hold_something_else_are_named(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.zeros(2))
    assert "numpy arrays" in refusal(tmp_path / "a.npz")
    with zipfile.ZipFile(tmp_path / "doc.pt", "w") as archive:
        archive.writestr("word/document.xml", "x")
    assert "word/document.xml" in refusal(tmp_path / "doc.pt")


def test_things_that_are_no_files_are_told(tmp_path):
    with pytest.raises(AceError) as caught:
        inspect_file(tmp_path / "nothing.pt")
    assert caught.value.problem.code is ErrorCode.NOT_FOUND
    os.mkfifo(tmp_path / "pipe.pt")
    assert "not a regular file" in refusal(tmp_path / "pipe.pt")


def test_every_row_of_the_registry_says_what_it_is():
    for name, row in LOADERS.items():
        assert row.name == name
        assert row.label
