"""Calls in generated code are timed while it runs, and it is left as it was."""

from types import ModuleType
from typing import Any

import torch

from ace_studio.engine.torch_private.kernels import WrittenCode, time_calls


def generated(**names: Any) -> WrittenCode:
    """Code in the form of Inductor's: loops named ``cpp_...``, and torch's libraries through ``torch.ops``."""
    module = ModuleType("generated")
    module.__dict__.update(torch=torch, cpp_fused_add=lambda x: x + 1, **names)
    return WrittenCode(modules=[module])


def run_of(code: WrittenCode) -> Any:
    names = code.modules[0].__dict__
    return lambda: names["torch"].ops.aten.relu.default(names["cpp_fused_add"](torch.zeros(2)))


def test_loops_and_library_calls_are_timed_in_their_order() -> None:
    code = generated()
    found = time_calls(code, run_of(code))
    assert [(one.name, one.is_loop) for one in found] == [("cpp_fused_add", True), ("aten.relu.default", False)]
    assert all(one.latency_ms > 0 for one in found)


def test_the_code_has_its_own_names_again_afterwards() -> None:
    code = generated()
    before = dict(code.modules[0].__dict__)
    time_calls(code, run_of(code))
    assert code.modules[0].__dict__ == before


def test_runs_that_make_other_calls_each_time_tell_nothing() -> None:
    code = generated(cpp_fused_mul=lambda x: x * 2)
    names, turns = code.modules[0].__dict__, iter(range(100))
    assert time_calls(code, lambda: names[("cpp_fused_add", "cpp_fused_mul")[next(turns) % 2]](torch.zeros(2))) == []
