"""Texts in a stored graph that torch may evaluate."""

from __future__ import annotations

import pytest

from ace_studio.engine.capture.cache_expressions import check_expressions, is_plain_condition, is_plain_expression


@pytest.mark.parametrize(
    ("text", "is_plain"),
    [
        ("Mul(Integer(16), Symbol('s34', positive=True, integer=True))", True),
        ("FloatPow(ToFloat(Symbol('s6', integer=True)), Float('0.5', precision=53))", True),
        ("__import__('os')", False),
        ("Symbol('s0').func", False),
        ("Symbol('a b')", False),
        ("eval('1')", False),
        ("(lambda: 1)()", False),
        ("", False),
    ],
)
def test_an_expression_is_numbers_symbols_and_arithmetic(text: str, is_plain: bool) -> None:
    assert is_plain_expression(text) is is_plain
    if not is_plain:
        with pytest.raises(ValueError, match="not an expression"):
            check_expressions(b'{"a": [{"expr_str": "%s"}]}' % text.encode(), [])


@pytest.mark.parametrize(
    ("text", "is_plain"),
    [
        ("L['batch']['ids'].size()[1] == 2*L['x'].size()[0]", True),
        ("1 < 3*L['x'].size()[3]*L['x'].size()[2]", True),
        ("torch.load('x')", False),
        ("L['x'].__class__", False),
        ("[1 for _ in L]", False),
    ],
)
def test_a_condition_compares_sizes(text: str, is_plain: bool) -> None:
    assert is_plain_condition(text) is is_plain
