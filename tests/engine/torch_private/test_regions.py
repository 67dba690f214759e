"""Ops in blocks of gradient mode and autocast are ops of the program, unless the block changes what they compute."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from ace_studio.engine.torch_private.exporting import DYNAMIC, export_program

torch.set_num_threads(1)


class Blocks(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = (nn.Linear(4, 4) for _ in range(3))
        self.frozen = False
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        with torch.set_grad_enabled(not self.frozen):
            y = self.first(x)
            self.count += 1
        with torch.autocast("cuda", dtype=torch.float16), torch.autocast("cpu", enabled=False):
            half = y * 0.5
            z = self.second(y.float())
        return self.third(z), half


class Mixed(nn.Module):
    """A block that computes in bfloat16, with one in it that does not."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.first(x)
            with torch.autocast("cpu", enabled=False):
                return self.second(y.float())


@pytest.mark.filterwarnings("ignore:.*CUDA is not available", "ignore:While compiling")
@pytest.mark.parametrize("strict", [False, True])
def test_blocks_that_change_no_value_hide_no_ops(strict: bool) -> None:
    torch.manual_seed(0)
    module, x = Blocks().eval(), torch.randn(2, 4)
    with torch.no_grad():
        program = export_program(module, (x,), {}, dynamic_shapes=({0: DYNAMIC},), strict=strict)
        expected = module(torch.ones(3, 4))
    names = [str(node.target) for node in program.graph.nodes]
    assert names.count("aten.linear.default") == 3
    assert not any("wrap_with" in name for name in names)
    assert not dict(program.graph_module.named_children())
    torch.testing.assert_close(program.module()(torch.ones(3, 4)), expected, rtol=0, atol=0)


def test_a_block_that_computes_in_16_bits_stays() -> None:
    torch.manual_seed(0)
    module, x = Mixed().eval(), torch.randn(2, 4)
    with torch.no_grad():
        program = export_program(module, (x,), {}, dynamic_shapes=None, strict=False)
        assert any("wrap_with_autocast" in str(node.target) for node in program.graph.nodes)
        torch.testing.assert_close(program.module()(x), module(x), rtol=0, atol=0)
