"""Operators that are written in ONNX here compute what torch does, at every size and in both runtimes."""

from __future__ import annotations

import pytest

pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")
pytest.importorskip("openvino")

import torch
from torch import Tensor, nn
from torch.nn.functional import pad, scaled_dot_product_attention

from ace_studio.engine.targets import TARGETS
from tests.engine.targets.onnx_cases import capture, job_for, sqnr_db
from tests.tiny_models import TinyModel

torch.set_num_threads(1)


def products(x: Tensor) -> tuple[Tensor, ...]:
    return x.cumprod(1), x.cumprod(0)


def repeats(x: Tensor) -> tuple[Tensor, ...]:
    count = x.shape[0]
    several = (x.repeat_interleave(count, dim) for dim in (0, 1, -1, None))
    return (
        *several,
        torch.arange(count).repeat_interleave(x.shape[1]),
        x.repeat_interleave(2, 1),
        x.repeat_interleave(3),
    )


def slices_written(x: Tensor) -> Tensor:
    y, half = x * 2, x.shape[1] // 2
    y[:, 1:] = x[:, :-1] * 3
    y[:, :, 1:6:2] = 0
    y[1:-1, 2:] += 5
    y[:, -2:] *= 7
    y[:, half:] -= x[:, half:]
    y[..., ::3] = x[..., ::3] + 11
    return y


def entries_written(x: Tensor) -> Tensor:
    y = x * 2
    y[1:-1, 2] *= 3
    y[..., -1] = x.sum(2)
    y[:, 0, 1] = 5
    return y


def diagonals(x: Tensor) -> tuple[Tensor, ...]:
    """Diagonals that are read (also beside infinities) and written, in any two dimensions and at offsets."""
    square, fixed = x @ x.mT, x.mT @ x[:, :, :6]
    y, turned = fixed * 2, fixed.transpose(0, 1) * 3
    y.diagonal(1, 1, 2).mul_(3)
    turned.diagonal(-2, -1, 0).add_(turned.diagonal(3, 2, 0)[:, :4])
    square.diagonal(dim1=1, dim2=2).add_(1)
    masked = square.masked_fill(~torch.eye(x.shape[1], dtype=torch.bool), -torch.inf)
    filled = fixed.sum(0).fill_diagonal_(5)
    signs = torch.diagonal_scatter(square > 0, square[:, 0] > 0, 0, 1, 2)
    return y, turned, masked.diagonal(0, 1, 2), filled, signs.float()


def numbers_minus_tensors(x: Tensor) -> tuple[Tensor, ...]:
    mask = (x > 0).long()
    return 1.0 - mask, 1 - mask, torch.rsub(mask, 2.5, alpha=2), 1 - x, 2.5 - x.double(), torch.rsub(x, 3, alpha=0.5)


def pads(x: Tensor) -> tuple[Tensor, ...]:
    wide = x[:, None]
    return pad(wide, (1, 2, 2, 0), mode="circular"), pad(x, (3, 3), mode="circular"), pad(x, (1, 2), value=4.0)


def attentions(x: Tensor) -> tuple[Tensor, ...]:
    length = x.shape[1]
    steps = torch.arange(length)
    near = (steps[:, None] - steps).abs() < 2
    wide = x[:, None, :, None, :].transpose(2, 3)
    return (
        scaled_dot_product_attention(x, x, x, attn_mask=near),
        scaled_dot_product_attention(x, x * 2, x, is_causal=True),
        scaled_dot_product_attention(x, x, x, attn_mask=near * 0.5, scale=0.2),
        scaled_dot_product_attention(wide, wide, wide),
        scaled_dot_product_attention(x[:, None], x[:, None], x[:, None]),
    )


def pieces(x: Tensor) -> tuple[Tensor, ...]:
    first, second, third = x.chunk(3, 1)
    before, behind = x.split([x.shape[1] - 2, 2], 1)
    return first.sum(1), second.sum(1) * third.sum(1), before, behind, *x.split((x.shape[1] + 1) // 2, 1)


def stacks(x: Tensor) -> tuple[Tensor, ...]:
    matrices = torch.arange(24.0).reshape(3, 8, 1).sin()
    return x[0] @ matrices, x @ matrices[0], x[:, 0] @ x.sum(1).unsqueeze(0).transpose(1, 2), x @ matrices[0, :, 0]


def sums_of_products(x: Tensor) -> tuple[Tensor, ...]:
    """Dots for none, one and several dimensions, of other ranks, beside sizes of 1, and without a written result."""
    weight, row, wide = torch.arange(48.0).reshape(6, 8).sin(), x.sum(2), x[:, None]
    return (
        torch.einsum("i...->i...", wide),
        torch.einsum("i...->i", wide),
        torch.einsum("b..., b -> b...", x, row[:, 0]),
        torch.einsum("...ij,...kj->...ik", x, wide),
        torch.einsum("...j,ij", x, weight),
        torch.einsum("...d,...d->...", x, x.sum((0, 1), keepdim=True)),
        torch.einsum("bld,bmd->bld", x, x.sum(1, keepdim=True)),
        torch.einsum("...,...->...", weight[0], x),
        torch.einsum("Bl...,a...->...Ba", x, weight),
        torch.einsum("...ii->...i", x.mT @ x),
        torch.einsum(x, [0, ..., 5], weight, [7, 5], [..., 7, 0]),
        torch.einsum("bd,...", x[:, 0], x[0, 0, 0]),
    )


class Calls(nn.Module):
    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> object:
        return self.function(x)


@pytest.mark.parametrize(
    "function",
    [
        products,
        repeats,
        slices_written,
        entries_written,
        diagonals,
        numbers_minus_tensors,
        pads,
        attentions,
        pieces,
        stacks,
        sums_of_products,
    ],
    ids=lambda one: one.__name__,
)
def test_both_runtimes_compute_what_torch_does_at_every_size(function):
    torch.manual_seed(0)
    examples = [(torch.randn(3, 7, 8),), (torch.randn(4, 9, 8),)]
    captured = capture(TinyModel(Calls(function).eval(), examples))
    for name in ("onnxruntime", "openvino"):
        lowered = TARGETS[name].lower(job_for(TARGETS[name], captured))
        for x in (torch.randn(2, 5, 8), torch.randn(5, 16, 8), *(example.args[0] for example in captured.examples)):
            assert sqnr_db(function(x), lowered(x)) > 100, (name, x.shape)
