"""What the targets that run in torch share: pinned threads, and errors for wrong sizes and files."""

import dataclasses
import shutil

import pytest
import torch
from torch import Tensor, nn

from ace_studio.engine.flow import Example
from ace_studio.engine.quantize.fidelity import sqnr_db
from ace_studio.engine.targets import TARGETS
from ace_studio.engine.targets.torch.program import compiler_problem, load_flat_graph, pinned
from ace_studio.engine.torch_private.exporting import serialize_error
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.plan import Precision
from tests.engine.captured import captured_of
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


class Caches(nn.Module):
    """A step that counts its calls and keeps its keys in buffers; x [1, 8], place [1]."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)
        self.register_buffer("keys", torch.zeros(6, 8))
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Tensor, place: Tensor) -> Tensor:
        self.calls += 1
        self.keys.index_copy_(0, place, self.layer(x))
        return (self.keys @ x.T).T + self.calls


def steps(seed: int) -> list[tuple[Tensor, Tensor]]:
    made = torch.Generator().manual_seed(seed)
    return [(torch.randn(1, 8, generator=made), torch.tensor([place])) for place in range(6)]


@pytest.mark.parametrize(
    ("name", "precision"),
    [
        ("eager", Precision.FP32),
        pytest.param(
            "inductor",
            Precision.INT8_STATIC,
            marks=[pytest.mark.slow, pytest.mark.skipif(bool(compiler_problem()), reason="needs a C++ compiler")],
        ),
    ],
)
def test_an_artifact_begins_with_the_first_state_whatever_ran_before(name, precision, tmp_path):
    torch.manual_seed(0)
    module, first = Caches().eval(), Caches().eval()
    first.load_state_dict(module.state_dict())
    captured = captured_of(module, *steps(1))
    made = make_job(captured, bound(name, captured, precision), tmp_path)
    made = dataclasses.replace(made, calibration=lambda: [Example.of(step) for step in steps(2)])
    with torch.no_grad():
        for step in steps(3):
            module(*step)  # as the reference is computed, and eager is timed
        built = TARGETS[name].lower(made)
        for step in steps(4):
            built(*step)
        artifact = torch.export.load(built.save(tmp_path)).module()
        for step in steps(5):
            expected = first(*step)
            for found in (artifact(*step)[0], built(*step)):
                assert sqnr_db([expected], [found]) > 12


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
