"""The kind of a file follows from its content."""

import zipfile

import numpy as np
import torch
from safetensors.torch import save_file

from ace_studio.engine.load import inspect_file
from ace_studio.engine.load.identify import identify, model_path
from tests.engine.load.samples import Plain, refusal


def test_torchscript_is_told_from_a_pickle(tmp_path):
    torch.jit.trace(Plain(), torch.zeros(1, 2)).save(tmp_path / "m.pt")
    assert inspect_file(tmp_path / "m.pt").kind == "torchscript"


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


def test_zips_that_hold_something_else_are_named(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.zeros(2))
    assert "numpy arrays" in refusal(tmp_path / "a.npz")
    with zipfile.ZipFile(tmp_path / "doc.pt", "w") as archive:
        archive.writestr("word/document.xml", "x")
    assert "word/document.xml" in refusal(tmp_path / "doc.pt")


def test_a_name_of_a_package_and_a_plain_folder_are_kinds_too(tmp_path):
    assert identify(tmp_path) == "folder"
    assert identify(tmp_path / "timm:resnet18") == "timm"


def test_a_configuration_stands_for_its_folder_only_if_it_names_a_model(tmp_path):
    config = tmp_path / "config.json"
    config.write_text("{}")
    assert model_path(config) == config
    config.write_text('{"model_type": "bert"}')
    assert model_path(config) == tmp_path


def test_a_compiled_package_is_refused_by_what_it_holds(tmp_path):
    with zipfile.ZipFile(tmp_path / "m.pt2", "w") as archive:
        archive.writestr("m/data/aotinductor/model/a.so", b"x")
    assert "AOTInductor" in refusal(tmp_path / "m.pt2")
