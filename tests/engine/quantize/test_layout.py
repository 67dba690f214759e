"""Int8 linear ops read values in their own order, and transposed inputs compile at dynamic sizes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.fidelity import sqnr_db
from ace_studio.engine.quantize.flat_graph import OP_ID, flat_graph
from ace_studio.engine.quantize.pt2e import lay_out_inputs, quantize_int8
from ace_studio.engine.targets import TARGETS
from ace_studio.engine.targets.torch.inductor import compile_graph
from ace_studio.engine.torch_private.exporting import DYNAMIC, export_program
from ace_studio.engine.torch_private.inductor import open_package, package_frozen


class Transposed(nn.Module):
    """Two linear ops that read one transposed value, and one that reads the sum of their results."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second, self.last = nn.Linear(16, 32), nn.Linear(16, 32), nn.Linear(32, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[B, 16, T] -> [B, T, 8]."""
        y = torch.tanh(x.transpose(1, 2))
        return self.last((self.first(y) + self.second(y)).contiguous())


def values(batch: int, length: int) -> torch.Tensor:
    """[B, 16, T], a view of [B, T, 16]: what a model gives that puts its channels last."""
    generator = torch.Generator().manual_seed(batch * length)
    return torch.randn(batch, length, 16, generator=generator).transpose(1, 2)


def flat(module: nn.Module, x: torch.Tensor, *dynamic: int):
    with torch.no_grad():
        program = export_program(module, (x,), {}, dynamic_shapes=(dict.fromkeys(dynamic, DYNAMIC),), strict=False)
    return flat_graph(program)


def linears(graph_module):
    return [node for node in graph_module.graph.nodes if str(node.target) == "aten.linear.default"]


def test_linear_ops_that_read_one_transposed_value_share_its_copy_and_the_others_get_none():
    module, x = Transposed().eval(), values(2, 9).contiguous()
    made = flat(module, x, 0, 2)
    first, second, last = linears(made)
    before = last.args[0]
    assert lay_out_inputs([first, second, last]) == 1
    assert first.args[0] is second.args[0]
    assert str(first.args[0].target) == "aten.contiguous.default"
    assert last.args[0] is before
    made.recompile()
    with torch.no_grad():
        for one in (x, values(3, 5)):
            assert torch.equal(made(one)[0], module(one))


def test_looking_at_the_layout_fixes_no_dynamic_size():
    made = flat(Transposed().eval(), values(2, 9).contiguous(), 0, 2)
    lay_out_inputs(linears(made))
    sizes = next(iter(made.graph.find_nodes(op="placeholder"))).meta["val"].shape
    assert [isinstance(size, int) for size in sizes] == [False, True, False]


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["static", "dynamic"])
def test_transposed_values_compile_to_int8_at_dynamic_sizes_and_may_be_transposed_inputs(precision: str):
    made = flat(Transposed().eval(), values(2, 9), 0, 2)
    ids = {node.meta[OP_ID] for node in linears(made)}
    quantized, refused = quantize_int8(
        made, **{precision: ids}, calibration=[[values(2, 9)], [values(3, 5)]], reporter=Reporter()
    )
    assert not refused
    run, nodes = compile_graph(quantized, threads=1, reporter=Reporter())
    assert len([node for node in nodes if node.target.startswith("onednn.qlinear_pointwise")]) == 3
    for sizes in ((2, 9), (1, 1), (5, 20)):
        x = values(*sizes).contiguous()
        with torch.no_grad():
            assert sqnr_db(list(quantized(x)), list(run(x))) > 40


@pytest.mark.full  # the same change of the graph as for the compiler, whose test is above
@pytest.mark.slow
@pytest.mark.skipif(not TARGETS["aoti"].available().ok, reason="no compiler for packages")
def test_a_package_of_a_graph_that_was_traced_with_a_transposed_input_reads_contiguous_ones(tmp_path: Path):
    module, path = Transposed().eval(), tmp_path / "model.pt2"
    package_frozen(flat(module, values(2, 9), 0, 2), path, before_folding=lambda _: None, notes={}, ranges={})
    run, _ = open_package(path)
    for sizes in ((2, 9), (5, 20)):
        x = values(*sizes).contiguous()
        with torch.no_grad():  # its code believes whatever it is given: a wrong layout is a wrong number, not an error
            assert sqnr_db([module(x)], list(run(x))) > 90
