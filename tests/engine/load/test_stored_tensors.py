"""Tensors in a torch file are listed without reading them."""

import time
import zipfile
from collections import OrderedDict

import torch

from ace_studio.engine.load import inspect_file, stored_tensors
from ace_studio.engine.load.stored_tensors import list_tensors
from tests.engine.load.samples import Payload


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


def test_a_pickle_that_cannot_be_followed_lists_nothing():
    assert list_tensors(b"\x80\x02N") == ()
    assert list_tensors(b"") == ()


def test_calls_in_the_pickle_are_not_made(tmp_path):
    mark = tmp_path / "mark"
    torch.save({"a": torch.zeros(2), "evil": Payload(mark)}, tmp_path / "w.pt")
    with zipfile.ZipFile(tmp_path / "w.pt") as archive:
        found = list_tensors(archive.read("w/data.pkl"))
    assert [tensor.name for tensor in found] == ["a"]
    assert not mark.exists()


def test_tables_that_share_members_are_looked_at_for_a_moment_only(tmp_path, monkeypatch):
    monkeypatch.setattr(stored_tensors, "_MOST_STEPS", 10_000)
    table = {str(index): index for index in range(500)}
    for _ in range(4):
        table = {str(index): table for index in range(500)}  # 500 to the power of 5
    torch.save(table, tmp_path / "w.pt")
    started = time.process_time()
    assert inspect_file(tmp_path / "w.pt").tensors == ()
    assert time.process_time() - started < 5
