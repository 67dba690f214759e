"""Short forms of size expressions, by exact rules of integer arithmetic.

A convolution with "same" padding computes ``max((ceil(h / 2) - 1) * 2 + 3 - h, 0)``, and then
``(h + pad - 3) // 2 + 1``. Written out over ``h`` and nested once per layer, that is an expression of thousands of
parts, and a tracer spends minutes asking questions about it. By the rules here the size after five such layers is
``(h + 31) // 32``.

Every rule is an identity over the whole numbers; nothing is assumed about sizes beyond the range of each symbol. They
are, for whole ``a`` and positive whole ``b``, ``d``, ``g``:

- ``ceil(a / b) = (a + b - 1) // b`` and ``floor(a / b) = a // b``;
- ``(a // b + n) // d = (a + n * b) // (b * d)``;
- ``(d - a % d) % d = d * ((a + d - 1) // d) - a``;
- ``(g * a + n) // (g * d) = (a + n // g) // d``, and ``(a + n) // d = (a + n % d) // d + n // d``;
- ``max``, ``min`` and comparisons fall away where the bounds of a difference decide them. Bounds come from
  ``(a - b + 1) / b <= a // b <= a / b``, put into the whole sum at once, so that ``2 * ((h + 1) // 2) - h`` is known
  to lie in [0, 1] although ``h`` has no largest value.

``a / b`` is a float in Python; its rounding changes no floor or ceiling while ``a`` is below 2**53, as sizes are.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from sympy import S

Expression = Any
"""A sympy expression. Neither sympy nor torch's own sympy functions have types."""
Bounds = tuple[float, float]
"""Smallest and largest value; whole numbers or infinite."""

_UNKNOWN: Bounds = (-math.inf, math.inf)
_DIVISIONS = frozenset({"FloorDiv", "CleanDiv"})
_REMAINDERS = frozenset({"Mod", "PythonMod"})
_WORTHWHILE = _DIVISIONS | _REMAINDERS | {"Max", "Min", "CeilToInt", "FloorToInt", "TruncToInt"}
"""Expressions without any of these are left as they are; tracers do well with sums and products."""


class ShortForms:
    """Applies the rules to expressions over symbols with known ranges, and remembers the results."""

    def __init__(self, floor_div: Callable[[Expression, int], Expression], range_of: Callable[[Any], Bounds]) -> None:
        """Set up for one set of symbols.

        Args:
            floor_div: Makes the expression ``a // d``.
            range_of: The range of a symbol. It may become narrower later, never wider.
        """
        self._floor_div = floor_div
        self._range_of = range_of
        self._short: dict[Expression, Expression] = {}
        self._known_bounds: dict[Expression, Bounds] = {}
        self._worth: dict[Expression, bool] = {}
        self._rules: dict[str, Callable[[Expression], Expression]] = {
            "FloorDiv": self._division,
            "Mod": self._remainder,
            "PythonMod": self._remainder,
            "CeilToInt": lambda e: self._rounding(e, up=True),
            "FloorToInt": lambda e: self._rounding(e, up=False),
            "TruncToInt": lambda e: self._rounding(e, up=False, is_trunc=True),
            "Max": lambda e: self._extreme(e, largest=True),
            "Min": lambda e: self._extreme(e, largest=False),
            "GreaterThan": lambda e: self._comparison(e, lambda low, _: low >= 0, lambda _, high: high < 0),
            "StrictGreaterThan": lambda e: self._comparison(e, lambda low, _: low > 0, lambda _, high: high <= 0),
            "LessThan": lambda e: self._comparison(e, lambda _, high: high <= 0, lambda low, _: low > 0),
            "StrictLessThan": lambda e: self._comparison(e, lambda _, high: high < 0, lambda low, _: low >= 0),
            "Equality": lambda e: self._comparison(e, _is_zero, _is_not_zero),
            "Unequality": lambda e: self._comparison(e, _is_not_zero, _is_zero),
        }

    def short(self, expression: Expression) -> Expression:
        """An equal expression that is not longer; the same object if no rule applies."""
        found = self._short.get(expression)
        if found is None:
            found = self._shortened(expression) if self._is_worthwhile(expression) else expression
            self._short[expression] = found
            self._short.setdefault(found, found)
        return found

    def _is_worthwhile(self, expression: Expression) -> bool:
        found = self._worth.get(expression)
        if found is None:
            parts = expression.args
            found = type(expression).__name__ in _WORTHWHILE or any(self._is_worthwhile(part) for part in parts)
            self._worth[expression] = found
        return found

    def _shortened(self, expression: Expression) -> Expression:
        parts = [self.short(part) for part in expression.args]
        if any(part is not old for part, old in zip(parts, expression.args, strict=True)):
            expression = expression.func(*parts)
        rule = self._rules.get(type(expression).__name__)
        return rule(expression) if rule else expression

    # --- rules ---

    def _division(self, expression: Expression) -> Expression:
        base, divisor = expression.args
        if not _is_positive_integer(divisor):
            return expression
        by = int(divisor)
        constant, rest = base.as_coeff_Add()
        if not constant.is_Integer:
            return expression
        if type(rest).__name__ in _DIVISIONS and _is_positive_integer(rest.args[1]):
            inner = rest.args[1]
            return self.short(self._floor_div(rest.args[0] + constant * inner, by * int(inner)))
        common = math.gcd(_common_factor(rest), by)
        if common > 1:
            return self.short(self._floor_div(_divided(rest, common) + int(constant) // common, by // common))
        whole, remainder = divmod(int(constant), by)
        return self._floor_div(rest + remainder, by) + whole if whole else expression

    def _remainder(self, expression: Expression) -> Expression:
        """``(d - a % d) % d``, what is missing to a multiple, by a division; other remainders stay."""
        base, divisor = expression.args
        if not _is_positive_integer(divisor):
            return expression
        constant, rest = base.as_coeff_Add()
        inner = -rest
        if not (constant.is_Integer and constant % divisor == 0 and type(inner).__name__ in _REMAINDERS):
            return expression
        size, by = inner.args
        if by != divisor:
            return expression
        return divisor * self.short(self._floor_div(size + divisor - 1, int(divisor))) - size

    def _rounding(self, expression: Expression, *, up: bool, is_trunc: bool = False) -> Expression:
        """``ceil``, ``floor`` or ``int`` of a whole number divided by, or times, a number."""
        fraction = _as_fraction(expression.args[0])
        if fraction is None:
            return expression
        top, by = fraction
        if is_trunc and self.bounds(top)[0] < 0:
            return expression
        return self.short(self._floor_div(top + by - 1 if up else top, by))

    def _extreme(self, expression: Expression, *, largest: bool) -> Expression:
        kept = list(expression.args)
        for one in expression.args:
            others = [other for other in kept if other is not one]
            if any(self._is_beyond(other, one, largest=largest) for other in others):
                kept.remove(one)
        if len(kept) == len(expression.args):
            return expression
        return kept[0] if len(kept) == 1 else expression.func(*kept)

    def _is_beyond(self, one: Expression, other: Expression, *, largest: bool) -> bool:
        low, high = self._difference(one, other)
        return low >= 0 if largest else high <= 0

    def _comparison(
        self, expression: Expression, is_true: Callable[[float, float], bool], is_false: Callable[[float, float], bool]
    ) -> Expression:
        left, right = expression.args
        if not (left.is_integer and right.is_integer):
            return expression
        low, high = self._difference(left, right)
        if is_true(low, high):
            return S.true
        return S.false if is_false(low, high) else expression

    # --- bounds ---

    def bounds(self, expression: Expression) -> Bounds:
        """Smallest and largest value of a whole-numbered expression; infinite where nothing is known."""
        found = self._known_bounds.get(expression)
        if found is None:
            found = self._known_bounds[expression] = self._sum_bounds([(expression, 1)])
        return found

    def _difference(self, left: Expression, right: Expression) -> Bounds:
        return self._sum_bounds([(left, 1), (right, -1)])

    def _sum_bounds(self, terms: list[tuple[Expression, int]]) -> Bounds:
        if not all(term.is_integer for term, _ in terms):
            return _UNKNOWN
        low, high = self._bound(terms, upper=False), self._bound(terms, upper=True)
        return (low if math.isinf(low) else math.ceil(low)), (high if math.isinf(high) else math.floor(high))

    def _bound(self, terms: list[tuple[Expression, int]], *, upper: bool) -> Any:
        """A bound of the sum: divisions become fractions, equal parts cancel, and what is left has a range."""
        sums: dict[Expression, Fraction] = {}
        for term, sign in terms:
            _collect(term, Fraction(sign), upper=upper, into=sums)
        total = Fraction(0)
        for part, factor in sums.items():
            if factor == 0:
                continue
            low, high = self._part_bounds(part)
            value = high if (factor > 0) == upper else low
            if math.isinf(value):
                return math.inf if upper else -math.inf
            total += factor * int(value)
        return total

    def _part_bounds(self, part: Expression) -> Bounds:
        """The bounds of a symbol or of another term that is not a sum."""
        kind = type(part).__name__
        if part is S.One:
            return 1, 1
        if part.is_Symbol:
            return self._range_of(part)
        if kind in _REMAINDERS and _is_positive_integer(part.args[1]):
            return 0, int(part.args[1]) - 1
        if kind in ("Max", "Min"):
            pick = max if kind == "Max" else min
            sides = [self.bounds(one) for one in part.args]
            return pick(low for low, _ in sides), pick(high for _, high in sides)
        return self._product_bounds(part.args) if part.is_Mul else _UNKNOWN

    def _product_bounds(self, factors: tuple[Expression, ...]) -> Bounds:
        sides = [self.bounds(factor) for factor in factors]
        if any(low < 0 for low, _ in sides):
            return _UNKNOWN
        highs = [high for _, high in sides]
        return math.prod(low for low, _ in sides), math.inf if math.inf in highs else math.prod(highs)


def _collect(term: Expression, factor: Fraction, *, upper: bool, into: dict[Expression, Fraction]) -> None:
    """Add ``factor * term`` to a sum, with every division replaced by its upper or lower bound."""
    if term.is_Add:
        for part in term.args:
            _collect(part, factor, upper=upper, into=into)
        return
    number, rest = term.as_coeff_Mul()
    if not number.is_Rational:
        number, rest = 1, term
    factor = factor * Fraction(int(number.p), int(number.q)) if number != 1 else factor
    if type(rest).__name__ in _DIVISIONS and _is_positive_integer(rest.args[1]):
        by = int(rest.args[1])
        _collect(rest.args[0], factor / by, upper=upper, into=into)
        if (factor > 0) != upper:
            into[S.One] = into.get(S.One, Fraction(0)) - factor * Fraction(by - 1, by)
    elif rest.is_Add:
        _collect(rest, factor, upper=upper, into=into)
    else:
        into[rest] = into.get(rest, Fraction(0)) + factor


def _as_fraction(value: Expression) -> tuple[Expression, int] | None:
    """Numerator and positive denominator of a float that is a whole number divided by, or times, a number."""
    if type(value).__name__ == "IntTrueDiv" and _is_positive_integer(value.args[1]):
        return value.args[0], int(value.args[1])
    number, rest = value.as_coeff_Mul()
    if type(rest).__name__ != "ToFloat" or not rest.args[0].is_integer or not math.isfinite(number):
        return None
    top, by = float(number).as_integer_ratio()  # exact; a product with more than a few bits is rounded by Python
    return (rest.args[0] * top, by) if abs(top) < 2**10 and by < 2**10 else None


def _common_factor(expression: Expression) -> int:
    """The largest number that divides every term of a sum."""
    found = 0
    for term in expression.args if expression.is_Add else (expression,):
        number, _ = term.as_coeff_Mul()
        if not number.is_Integer:
            return 1
        found = math.gcd(found, int(number))
    return found


def _divided(expression: Expression, by: int) -> Expression:
    """A sum with every term divided; all of them are multiples."""
    terms = expression.args if expression.is_Add else (expression,)
    return sum((term / by for term in terms), start=0 * terms[0])


def _is_positive_integer(value: Expression) -> bool:
    return bool(value.is_Integer) and int(value) > 0


def _is_zero(low: float, high: float) -> bool:
    return low == high == 0


def _is_not_zero(low: float, high: float) -> bool:
    return low > 0 or high < 0
