"""A Hugging Face folder: configuration, weight files and own code, read without running anything."""

import json

import pytest

from ace_studio.engine.load.huggingface.folder import looks_like_huggingface, read_folder
from ace_studio.records.errors import AceError, ErrorCode


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"architectures": ["NetModel", 3], "model_type": "nobody-has-it"}))
    return tmp_path


def write_index(folder, **weight_map):
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))


def refusal(folder) -> str:
    with pytest.raises(AceError) as caught:
        read_folder(folder).weight_files()
    assert caught.value.problem.code is ErrorCode.BAD_FILE
    return caught.value.problem.as_text()


def test_only_names_count_as_architectures(folder):
    assert read_folder(folder).architectures == ("NetModel",)


def test_safetensors_come_before_pickles_and_a_single_file_before_shards(folder):
    assert read_folder(folder).weight_files() == ()
    (folder / "pytorch_model.bin").touch()
    assert read_folder(folder).weight_files() == (folder / "pytorch_model.bin",)
    (folder / "a.safetensors").touch()
    write_index(folder, x="a.safetensors", y="a.safetensors")
    assert read_folder(folder).weight_files() == (folder / "a.safetensors",)
    (folder / "model.safetensors").touch()
    assert read_folder(folder).weight_files() == (folder / "model.safetensors",)


def test_an_index_may_only_name_files_of_its_folder_that_are_there(folder):
    write_index(folder, x="../../etc/passwd")
    assert "outside of its folder" in refusal(folder)
    write_index(folder, x="a.safetensors")
    assert "missing: a.safetensors" in refusal(folder)
    write_index(folder)
    assert "no weight_map" in refusal(folder)


def test_code_is_needed_only_if_it_is_registered_and_transformers_lacks_the_type(folder):
    (folder / "m.py").touch()
    assert not read_folder(folder).needs_its_own_code
    (folder / "config.json").write_text(json.dumps({"auto_map": {"AutoModel": "m.A", "x": 3}, "model_type": "nobody"}))
    assert read_folder(folder).needs_its_own_code
    assert read_folder(folder).files() == (folder / "config.json", folder / "m.py")


@pytest.mark.parametrize(("text", "is_it"), [("{}", False), ("[1]", False), ("{", False), ('{"model_type": 1}', True)])
def test_a_folder_is_one_if_its_configuration_names_a_model(folder, text, is_it):
    (folder / "config.json").write_text(text)
    assert looks_like_huggingface(folder) is is_it
