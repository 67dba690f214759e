"""What the targets that run in torch share: pinned threads, and errors for wrong sizes and files."""

import shutil

import pytest
import torch

from ace_studio.engine.targets import TARGETS
from ace_studio.engine.targets.torch.program import compiler_problem, load_flat_graph, pinned
from ace_studio.engine.torch_private.exporting import serialize_error
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.plan import Precision
from tests.engine.targets.conftest import bound, captured_model, make_job


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
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(shutil, "which", lambda name: "/usr/bin/clang++" if name == "clang++" else None)
    assert compiler_problem() == ""
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert "g++ was not found" in compiler_problem()
    monkeypatch.setenv("CXX", "/nowhere/c++")
    assert "/nowhere/c++ was not found" in compiler_problem()


def test_an_op_that_no_program_file_can_hold_is_named_with_a_remedy(tmp_path, monkeypatch):
    def refuse(*_: object) -> None:
        raise serialize_error()("Failed serializing node scan in graph: ...")

    captured = captured_model("mlp")
    lowered = TARGETS["eager"].lower(make_job(captured, bound("eager", captured, Precision.FP32), tmp_path))
    monkeypatch.setattr(torch.export, "save", refuse)
    with pytest.raises(AceError, match="cannot write scan into a program file") as caught:
        lowered.save(tmp_path)
    assert caught.value.problem.code is ErrorCode.UNSUPPORTED
    assert "result.module" in caught.value.problem.remedy
