"""Symbolic sizes and guards as text and numbers."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.export import ExportedProgram

from ace_studio.engine.torch_private import sizes
from ace_studio.engine.torch_private.exporting import DYNAMIC, export_program


class Doubled(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if x.shape[0] == 9:
            return x
        return torch.cat([x, x])


def exported() -> ExportedProgram:
    with torch.no_grad():
        return export_program(Doubled(), (torch.ones(4, 3),), {}, dynamic_shapes={"x": {0: DYNAMIC}}, strict=False)


def test_a_size_is_read_as_text_symbols_and_numbers() -> None:
    program = exported()
    rows, columns = program.graph.find_nodes(op="placeholder")[0].meta["val"].shape
    doubled = next(node for node in program.graph.nodes if "cat" in node.name).meta["val"].shape[0]
    (symbol,) = sizes.size_symbols(rows)
    assert sizes.size_text(rows) == symbol and sizes.size_text(columns) == "3" and sizes.size_symbols(columns) == ()
    assert sizes.size_text(doubled) == f"2*{symbol}"
    assert (sizes.size_hint(rows), sizes.size_hint(doubled), sizes.size_hint(columns)) == (4, 8, 3)
    assert sizes.size_at(doubled, {symbol: 7}) == 14
    assert sizes.size_at(doubled, {}) is None
    low, high = sizes.symbol_ranges(program)[symbol]
    assert (low or 0) <= 1 and high is None


def test_a_guard_speaks_of_an_input_and_can_be_dropped_and_put_back() -> None:
    program = exported()
    before = sizes.program_guards(program)
    (rule,) = [rule for rule in sizes.size_rules(program) if "9" in rule.text]
    assert [(keys[-1], dim) for _, keys, dim in rule.sizes] == [("x", 0)]
    put_back = sizes.drop_guards(program, lambda guard: guard == rule.text)
    assert rule.text not in sizes.program_guards(program)
    put_back()
    assert sizes.program_guards(program) == before


def test_a_smallest_size_in_a_guard_is_written_as_python_writes_it() -> None:
    program = exported()
    program._guards_code = ["L['x'].size()[0] == torch.sym_min(16, L['x'].size()[0])"]  # so does torch 2.14
    assert sizes.program_guards(program) == ("L['x'].size()[0] == min(16, L['x'].size()[0])",)


def test_infinite_bounds_are_none() -> None:
    assert [sizes.finite_bound(value) for value in (5, float("inf"), 2**62, None)] == [5, None, None, None]
