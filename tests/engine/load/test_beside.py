"""Weights and code that lie beside each other find each other by the names of the tensors."""

import json

import pytest
import torch
from safetensors.torch import save_file

from ace_studio.engine.load import beside
from ace_studio.engine.load.inspect_file import inspect_file

CODE = """
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.relu = nn.ReLU()
        self.last = nn.Linear(4, 2)
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "net.py").write_text(CODE)
    return tmp_path


def state(*names):
    return {f"{name}.{kind}": torch.zeros(2, 2) for name in names for kind in ("weight", "bias")}


def test_weights_with_the_names_of_the_code_are_offered_with_it_and_the_code_with_them(folder):
    torch.save({"state_dict": state("module.first", "module.last")}, folder / "b.pth")
    save_file(state("other", "last"), folder / "a.safetensors")
    assert inspect_file(folder / "net.py").weights == (str(folder / "b.pth"),)
    assert inspect_file(folder / "b.pth").code == (str(folder / "net.py"),)
    assert inspect_file(folder / "a.safetensors").code == ()


def test_weights_in_several_files_are_offered_by_their_index_alone(folder):
    (folder / "weights").mkdir()
    parts = [f"model-{at:05}.safetensors" for at in range(40)]  # more than are looked at
    for at, name in enumerate(parts):
        save_file(state("first", "last") if at == 0 else {f"last.{at}": torch.zeros(1)}, folder / "weights" / name)
    table = {f"first.{at}": name for at, name in enumerate(parts)}
    index = folder / "weights" / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": table}))
    report = inspect_file(index)
    assert (report.kind, len(report.tensors), report.code) == ("weights-index", 43, (str(folder / "net.py"),))
    of_shards = sum(path.stat().st_size for path in folder.rglob("*.safetensors"))
    assert report.size_bytes == index.stat().st_size + of_shards
    assert inspect_file(folder / "net.py").weights == (str(index),)


def test_of_several_the_one_with_the_name_of_the_code_comes_first(folder):
    for name in ("epoch3.pth", "net.pth"):
        torch.save(state("first", "last"), folder / name)
    assert [path.rpartition("/")[2] for path in inspect_file(folder / "net.py").weights] == ["net.pth", "epoch3.pth"]


def test_a_file_that_is_deleted_while_it_is_looked_at_is_no_error(folder, monkeypatch):
    for name in ("epoch3.pth", "net.pth"):
        torch.save(state("first", "last"), folder / name)

    def read_and_delete(path, read=beside.list_tensors_of_file):
        found = read(path)
        path.unlink()
        return found

    monkeypatch.setattr(beside, "list_tensors_of_file", read_and_delete)
    assert inspect_file(folder / "net.py").weights == (str(folder / "net.pth"), str(folder / "epoch3.pth"))


def test_code_that_loads_its_weights_itself_is_offered_none(folder):
    torch.save(state("first", "last"), folder / "net.pth")
    (folder / "net.py").write_text(f"{CODE}\ndef make():\n    Net().load_state_dict({{}})\n")
    report = inspect_file(folder / "net.py")
    assert (report.weights, report.loads_weights) == ((), True)
