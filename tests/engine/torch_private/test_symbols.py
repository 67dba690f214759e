"""Sizes in short form: the graph computes the same, says the same, and no name of torch has to be there for it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import ExportedProgram
from torch.nn import functional

from ace_studio.engine.capture.verify import difference
from ace_studio.engine.flow import CapturedModel
from ace_studio.engine.torch_private import symbols
from ace_studio.engine.torch_private.exporting import DYNAMIC, export_program
from tests.engine.capture.captures import capture, dims

SIZES = list(itertools.product((1, 3), (16, 23, 37, 64), (17, 40)))


class SamePadding(nn.Module):
    """Convolutions that pad in Python as far as their stride needs, one after the other."""

    def __init__(self, levels: int = 4) -> None:
        super().__init__()
        kernels = (3, 5, 3, 2, 3)[:levels]
        widths = (3, 4, 4, 4, 4, 4)
        self.layers = nn.ModuleList(
            nn.Conv2d(widths[at], widths[at + 1], kernel, stride=2) for at, kernel in enumerate(kernels)
        )

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            pads = [
                max((math.ceil(size / 2) - 1) * 2 + layer.kernel_size[0] - size, 0) for size in reversed(x.shape[2:])
            ]
            sides = [side for pad in pads for side in (pad // 2, pad - pad // 2)]
            x = torch.relu(layer(functional.pad(x, sides)))
        return x.mean((2, 3))


class Resized(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        half = functional.interpolate(x, scale_factor=0.5)
        back = functional.interpolate(half, size=(math.floor(x.shape[2] * 1.5), x.shape[3]))
        return back + functional.interpolate(back, scale_factor=2)[..., : back.shape[2], : back.shape[3]]


class Patches(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        rows, columns = math.ceil(x.shape[2] / 4), math.ceil(x.shape[3] / 4)
        x = functional.interpolate(x, (rows * 4, columns * 4))
        x = x.reshape(x.shape[0], 3, rows, 4, columns, 4).permute(0, 2, 4, 3, 5, 1)
        return x.reshape(x.shape[0], rows * columns, 48).cumsum(1)


class Pyramid(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList(nn.Conv2d(3, 3, 3, stride=2, padding=1) for _ in range(3))
        self.pool = nn.MaxPool2d(3, stride=2, ceil_mode=True)

    def forward(self, x: Tensor) -> Tensor:
        levels = [self.pool(x)]
        for layer in self.down:
            levels.append(layer(levels[-1]))
        top = levels.pop()
        for level in reversed(levels):
            top = level + functional.interpolate(top, size=level.shape[2:])
        return top.flatten(2)


class LastRow(nn.Module):
    """Positions as a share of the last one, whose slice has the size 1 only because a size is at least 1."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 4, 3, stride=16, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        patches = self.patches(x)
        rows = torch.ones(patches.shape[0], patches.shape[2], patches.shape[3]).cumsum(1)
        return patches + (rows / (rows[:, -1:, :] + 1e-6)).unsqueeze(1)


class TwoLevels(SamePadding):
    def __init__(self) -> None:
        super().__init__(2)


MODELS: list[Callable[[], nn.Module]] = [SamePadding, Resized, Patches, Pyramid, LastRow]
SMALL_MODELS: list[Callable[[], nn.Module]] = [TwoLevels, Resized, Patches, Pyramid, LastRow]
"""Those that plain export takes a second for."""


@cache
def short(make: Callable[[], nn.Module], *, strict: bool = False) -> tuple[nn.Module, ExportedProgram]:
    """The module and its program with sizes in short form, made once."""
    module = make()
    return module, exported(module, strict=strict)


def exported(module: nn.Module, *, strict: bool = False) -> ExportedProgram:
    torch.manual_seed(0)
    with torch.no_grad():
        return export_program(
            module.eval(), (torch.randn(2, 3, 32, 48),), {}, dynamic_shapes=({0: DYNAMIC, 2: DYNAMIC, 3: DYNAMIC},),
            strict=strict,
        )  # fmt: skip


def sizes_text(program: ExportedProgram) -> str:
    shapes = [node.meta["val"].shape for node in program.graph.nodes if isinstance(node.meta.get("val"), Tensor)]
    return " ".join(str(shape) for shape in shapes)


STRICT = (TwoLevels, LastRow)
"""Models that are also read as bytecode; the sizes of the others are the same numbers then."""


@pytest.mark.parametrize(
    ("make", "strict"),
    [(make, False) for make in MODELS]
    + [pytest.param(make, True, marks=[pytest.mark.full] * (make not in STRICT)) for make in [*MODELS, TwoLevels]],
)
def test_the_graph_equals_eager_at_sizes_that_were_not_traced(make: Callable[[], nn.Module], strict: bool) -> None:
    module, program = short(make, strict=strict)
    graph = program.module(check_guards=False)
    with torch.no_grad():
        for size in SIZES:
            x = torch.randn(size[0], 3, *size[1:])
            assert not difference(module(x), graph(x)), size


@pytest.mark.parametrize(
    "make", [pytest.param(make, marks=[pytest.mark.full] * (make is TwoLevels)) for make in SMALL_MODELS]
)
def test_conditions_refuse_the_same_sizes_as_those_of_plain_export(
    make: Callable[[], nn.Module], monkeypatch: pytest.MonkeyPatch
) -> None:
    module, program = short(make)
    graph = program.module()
    monkeypatch.setattr(symbols, "_SYMBOLIC_NUMBER", ("fx.experimental.module_of_another_release", "SymNode"))
    plain = exported(module).module()
    for size in [*SIZES, (1, 1, 1), (1, 2, 3), (2, 5, 4)]:
        x = torch.randn(size[0], 3, *size[1:])
        if accepts(plain, x):
            assert accepts(graph, x), size


def accepts(graph: Callable[[Tensor], Any], x: Tensor) -> bool:
    try:
        with torch.no_grad():
            graph(x)
    except (AssertionError, RuntimeError):
        return False
    return True


def test_sizes_behind_same_padding_are_one_division() -> None:
    text = sizes_text(short(SamePadding)[1])
    assert "+ 15)//16" in text
    assert not any(word in text for word in ("CeilToInt", "Max", "TrueDiv"))


def test_the_graph_holds_whole_numbers_only_and_can_be_saved(tmp_path: Path) -> None:
    module, program = short(SamePadding)
    assert not {math.ceil, torch.sym_max} & {node.target for node in program.graph.nodes}
    torch.export.save(program, tmp_path / "program.pt2")
    again = torch.export.load(tmp_path / "program.pt2").module()
    x = torch.randn(3, 3, 37, 41)
    with torch.no_grad():
        assert not difference(module(x), again(x))


def test_without_torchs_symbolic_number_export_is_plain_with_the_same_verdicts(monkeypatch: pytest.MonkeyPatch) -> None:
    examples = [(torch.randn(1, 3, 32, 48),), (torch.randn(2, 3, 40, 56),)]
    fast, _ = capture(TwoLevels(), examples)
    monkeypatch.setattr(symbols, "_SYMBOLIC_NUMBER", ("fx.experimental.sym_node", "NodeOfAnotherRelease"))
    plain, _ = capture(TwoLevels(), examples)  # which proves it equal to eager
    assert "CeilToInt" in sizes_text(plain.program)
    assert told(fast) == told(plain)


def told(captured: CapturedModel) -> dict[str, tuple[Any, ...]]:
    found = dims(captured).items()
    return {key: (one.verdict, one.symbol, one.min, one.max, one.verified_sizes) for key, one in found}


def test_without_torchs_division_the_export_is_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symbols, "_WHOLE_DIVISION", ("utils._sympy.functions", "DivisionOfAnotherRelease"))
    module, x = TwoLevels(), torch.randn(1, 3, 21, 50)
    program = exported(module)
    assert "CeilToInt" in sizes_text(program)
    with torch.no_grad():
        assert not difference(module(x), program.module()(x))


def test_nothing_stays_patched_when_a_trace_fails() -> None:
    kind = symbols._private(*symbols._SYMBOLIC_NUMBER)
    before = kind.__init__
    with pytest.raises(ZeroDivisionError), symbols.short_sizes():
        assert kind.__init__ is not before
        raise ZeroDivisionError
    assert kind.__init__ is before
