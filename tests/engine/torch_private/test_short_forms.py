"""Short forms equal what they replace, and bounds hold, at every size."""

import math

import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._sympy.functions import (
    CeilToInt,
    FloorDiv,
    FloorToInt,
    IntTrueDiv,
    Max,
    Min,
    PythonMod,
    ToFloat,
    TruncToInt,
)

from ace_studio.engine.torch_private.short_forms import ShortForms

H, W = sympy.symbols("h w", integer=True)
SIZES = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 97, 128, 1023)


def rules(low: float = 0, high: float = math.inf) -> ShortForms:
    return ShortForms(FloorDiv, lambda _: (low, high))


def at(expression: sympy.Basic, h: int, w: int = 5) -> object:
    return expression.xreplace({H: sympy.Integer(h), W: sympy.Integer(w)})


def same_padding(size: sympy.Expr, *, kernel: int, stride: int) -> sympy.Expr:
    """Size behind a convolution that pads as far as the stride needs."""
    outputs = CeilToInt(IntTrueDiv(size, sympy.Integer(stride)))
    padding = Max(0, (outputs - 1) * stride + kernel - size)
    return FloorDiv(size + padding - kernel, stride) + 1


def test_a_pyramid_of_same_padding_becomes_one_division() -> None:
    short, size = rules(), H
    for level in range(1, 6):
        size = short.short(same_padding(size, kernel=3, stride=2))
        assert size == FloorDiv(H + 2**level - 1, 2**level)


@pytest.mark.parametrize(
    ("expression", "shorter"),
    [
        (CeilToInt(IntTrueDiv(H, sympy.Integer(3))), FloorDiv(H + 2, 3)),
        (FloorToInt(IntTrueDiv(H, sympy.Integer(3))), FloorDiv(H, 3)),
        (TruncToInt(0.5 * ToFloat(H)), FloorDiv(H, 2)),
        (TruncToInt(2.0 * ToFloat(H)), 2 * H),
        (CeilToInt(0.25 * ToFloat(H)), FloorDiv(H + 3, 4)),
        (FloorDiv(FloorDiv(H, 2) + 1, 2), FloorDiv(H + 2, 4)),
        (FloorDiv(H - 1, 2) + 1, FloorDiv(H + 1, 2)),
        (Max(0, 2 * FloorDiv(H + 1, 2) - H), 2 * FloorDiv(H + 1, 2) - H),
        (Max(H, H - 2), H),
        (Min(4, 4 + FloorDiv(H, 2)), sympy.Integer(4)),
        (FloorDiv(H, 4) + PythonMod(7 - PythonMod(FloorDiv(H, 4), 7), 7), 7 * FloorDiv(H + 24, 28)),
        (2 * FloorDiv(H + 1, 2) >= H, sympy.true),
        (2 * FloorDiv(H, 2) > H, sympy.false),
        (sympy.Ne(FloorDiv(H, 2) + 1, 0), sympy.true),
        (sympy.Eq(PythonMod(H, 4), 5), sympy.false),
    ],
)
def test_a_rule_gives_the_short_form(expression: sympy.Basic, shorter: sympy.Basic) -> None:
    assert rules().short(expression) == shorter


@pytest.mark.parametrize(
    "expression",
    [
        H + 2 * W, sympy.Eq(H, W), H * W >= 2, FloorDiv(H, W), sympy.Ne(FloorDiv(H, 2), 0), Max(H, W),
        sympy.Eq(2 * FloorDiv(H + 1, 2), H), TruncToInt(0.1 * ToFloat(H)), FloorToInt(IntTrueDiv(H, W)),
        sympy.Eq(PythonMod(H, 4), 0), PythonMod(7 - PythonMod(H, 4), 7),
    ],
)  # fmt: skip
def test_what_no_rule_decides_stays_the_same_object(expression: sympy.Basic) -> None:
    assert rules().short(expression) is expression


def test_truncation_of_what_may_be_negative_is_no_floor() -> None:
    expression = TruncToInt(IntTrueDiv(H - 8, sympy.Integer(3)))
    assert rules().short(expression) is expression
    assert rules(low=8).short(expression) == FloorDiv(H + 1, 3) - 3


def test_a_range_decides_what_the_sizes_alone_do_not() -> None:
    condition = FloorDiv(H, 2) >= 3
    assert rules().short(condition) is condition
    assert rules(low=6).short(condition) is sympy.true
    assert rules(high=5).short(condition) is sympy.false


def _steps() -> st.SearchStrategy[list[tuple[str, int]]]:
    kinds = st.sampled_from(
        ["floor", "ceil", "trunc", "add", "times", "max", "min", "minus", "half", "mod", "multiple"]
    )
    return st.lists(st.tuples(kinds, st.integers(1, 7)), min_size=1, max_size=7)


def _apply(size: sympy.Expr, kind: str, number: int) -> sympy.Expr:
    of = sympy.Integer(number)
    return {
        "floor": lambda: FloorDiv(size, of),
        "ceil": lambda: CeilToInt(IntTrueDiv(size, of)),
        "trunc": lambda: TruncToInt(IntTrueDiv(size, of)),
        "add": lambda: size + number,
        "times": lambda: size * number + W,
        "max": lambda: Max(size, H - number),
        "min": lambda: Min(size, 3 * H + number),
        "minus": lambda: size - number,
        "half": lambda: FloorToInt(0.5 * ToFloat(size)),
        "mod": lambda: size - PythonMod(H, of + 1),
        "multiple": lambda: size + PythonMod(of - PythonMod(size, of), of) if number > 1 else size,
    }[kind]()


@pytest.mark.skipif(
    not TruncToInt(sympy.Float(0.0)).is_Integer, reason="torch 2.15 itself cannot evaluate its functions at 0.0"
)
@settings(max_examples=50, deadline=None, derandomize=True)
@given(_steps(), st.integers(-3, 40))
def test_short_forms_and_bounds_hold_at_every_size(steps: list[tuple[str, int]], against: int) -> None:
    short, size = rules(), H
    plain = H
    for kind, number in steps:
        plain, size = _apply(plain, kind, number), short.short(_apply(size, kind, number))
    low, high = short.bounds(size)
    condition = short.short(size >= against)
    for h in SIZES:
        value = int(at(plain, h))
        assert int(at(size, h)) == value
        assert low <= value <= high
        assert bool(at(condition, h)) == (value >= against)
