"""A model is loaded from a changed copy, and nothing that was loaded stays changed."""

import sys

import pytest

from ace_studio.engine.load import changed_source
from tests.engine.load.samples import load, write_net


def test_the_copy_runs_in_the_place_of_the_file_and_afterwards_the_file_again(tmp_path):
    path = write_net(tmp_path)
    copy = tmp_path / "copy.txt"
    copy.write_text(path.read_text().replace("nn.Linear(2, 3)", "nn.Linear(2, 5)"))
    with changed_source(path, copy):
        changed = load(tmp_path, "net.py", entry="make_model")
    assert changed.module.linear.out_features == 5
    assert load(tmp_path, "net.py", entry="make_model").module.linear.out_features == 3


def test_a_changed_neighbour_is_imported_from_its_copy(tmp_path):
    (tmp_path / "sizes.py").write_text("WIDTH = 3\n")
    (tmp_path / "copy.txt").write_text("WIDTH = 5\n")
    (tmp_path / "m.py").write_text(
        "import torch, sizes\ndef make_model():\n    return torch.nn.Linear(2, sizes.WIDTH)\n"
    )
    with changed_source(tmp_path / "sizes.py", tmp_path / "copy.txt"):
        assert load(tmp_path, "m.py").module.out_features == 5
    assert load(tmp_path, "m.py").module.out_features == 3


def test_modules_path_and_finders_are_restored_after_an_error(tmp_path):
    path = write_net(tmp_path)
    before = (set(sys.modules), list(sys.path), list(sys.meta_path))
    with pytest.raises(ValueError), changed_source(path, path):
        load(tmp_path, "net.py", entry="make_model")
        raise ValueError
    assert not {name for name in set(sys.modules) - before[0] if name == "net"}
    assert (sys.path, sys.meta_path) == (before[1], before[2])
