"""The registry of loaders is complete."""

import zipfile

import torch

from ace_studio.engine.load import LOADERS, inspect_file
from ace_studio.engine.load.kinds import TrustLevel
from tests.engine.load.samples import Plain, write_net


def test_every_row_of_the_registry_says_what_it_is():
    for name, row in LOADERS.items():
        assert row.name == name
        assert row.label


def test_every_kind_that_runs_code_names_the_files_to_trust(tmp_path):
    path = write_net(tmp_path)
    torch.save(Plain(), tmp_path / "whole.pt")
    for row in LOADERS.values():
        if row.trust is TrustLevel.CODE and row.name != "huggingface-code":
            file = tmp_path / "whole.pt" if row.name == "pickle-module" else path
            assert row.code_files(file) == (file,)
        elif row.trust is not TrustLevel.CODE:
            assert row.code_to_run(path) == []


def test_what_only_says_why_not_is_not_openable():
    assert [row.name for row in LOADERS.values() if not row.is_openable] == ["folder"]


def test_only_onnx_files_have_another_frontend():
    assert {row.name for row in LOADERS.values() if row.frontend != "torch"} == {"onnx"}


def test_a_description_says_that_numbers_are_big_endian_and_a_format_old(tmp_path):
    torch.save(Plain().state_dict(), tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    assert "in the format of torch before 1.6" in inspect_file(tmp_path / "old.pt").notes
    torch.save(Plain().state_dict(), tmp_path / "w.pt")
    with zipfile.ZipFile(tmp_path / "w.pt") as source, zipfile.ZipFile(tmp_path / "big.pt", "w") as target:
        for info in source.infolist():
            is_order = info.filename.endswith("byteorder")
            target.writestr(info.filename, b"big" if is_order else source.read(info))
    assert "it says that its numbers are big-endian" in inspect_file(tmp_path / "big.pt").notes
