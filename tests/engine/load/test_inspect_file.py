"""What a file is, found without running it; what it really is, when it is not what it is called."""

import hashlib

import pytest
import torch
from safetensors.torch import save_file

from ace_studio.engine.load import inspect_file
from tests.engine.load.samples import Plain, write_net, write_pt2, write_pt2_with_payload


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


def test_a_folder_is_as_large_as_its_files(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "vit"}')
    (tmp_path / "cache").mkdir()
    save_file({"a": torch.zeros(2, 3)}, tmp_path / "model.safetensors")
    assert inspect_file(tmp_path).size_bytes == sum(file.stat().st_size for file in tmp_path.glob("*.*"))


@pytest.mark.parametrize("is_zip", [True, False])
def test_a_state_dict_is_data_and_a_whole_module_is_code(tmp_path, is_zip):
    torch.save(Plain().state_dict(), tmp_path / "w.pt", _use_new_zipfile_serialization=is_zip)
    torch.save(Plain(), tmp_path / "m.pt", _use_new_zipfile_serialization=is_zip)
    assert (inspect_file(tmp_path / "w.pt").kind, inspect_file(tmp_path / "w.pt").trust) == ("state-dict", "data")
    report = inspect_file(tmp_path / "m.pt")
    assert (report.kind, report.trust) == ("pickle-module", "code")
    assert any("samples.Plain" in line for line in report.would_run)


def test_an_exported_program_is_code_and_names_the_pickle_inside_it(tmp_path):
    mark = tmp_path / "mark"
    assert (report := inspect_file(write_pt2(tmp_path / "m.pt2"))).kind == "pt2"
    assert report.trust == "code"
    evil = inspect_file(write_pt2_with_payload(tmp_path / "evil.pt2", mark))
    assert any("mkdir" in line for line in evil.would_run)
    assert not mark.exists()
