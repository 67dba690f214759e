"""What the targets that run in torch share: pinned threads, and errors for wrong sizes and files."""

from __future__ import annotations

import shutil

import pytest
import torch

from ace_studio.engine.targets.torch.program import compiler_problem, load_flat_graph, pinned
from ace_studio.records.errors import AceError, ErrorCode


def test_a_call_gets_contiguous_inputs_no_gradients_and_its_number_of_threads():
    seen = []

    def run(x):
        seen.append((x.is_contiguous(), torch.is_grad_enabled(), torch.get_num_threads()))
        return [x]

    before = torch.get_num_threads()
    try:
        pinned(run, threads=2)(torch.zeros(3, 4).T)
    finally:
        torch.set_num_threads(before)
    assert seen == [(True, False, 2)]


def test_a_size_that_the_code_was_not_built_for_is_bad_input():
    def run(_):
        raise AssertionError("expected size 4==5\nmore")

    with pytest.raises(AceError) as caught:
        pinned(run, threads=torch.get_num_threads())(torch.zeros(1))
    assert (caught.value.problem.code, caught.value.problem.why) == (ErrorCode.BAD_INPUT, "expected size 4==5")


def test_a_file_that_is_no_program_is_refused(tmp_path):
    path = tmp_path / "model.pt2"
    path.write_bytes(b"nothing")
    with pytest.raises(AceError) as caught:
        load_flat_graph(path)
    assert caught.value.problem.code is ErrorCode.BAD_FILE


def test_without_a_compiler_it_is_named(monkeypatch):
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr(shutil, "which", lambda name: "/usr/bin/clang++" if name == "clang++" else None)
    assert compiler_problem() == ""
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert "g++ was not found" in compiler_problem()
