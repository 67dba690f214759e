"""Which conditions of a graph may be tried without."""

import ast

import pytest

from ace_studio.engine.capture.guards import excludes_only_one, holds

X = "L['x'].size()[0]"
Y = "L['batch']['ids'].size()[1]"


@pytest.mark.parametrize("guard", [f"{X} != 1", f"{X} >= 2", f"(32*{X}) != 32", f"({X}*{Y}) != {X}", f"{X} > 1"])
def test_conditions_that_fail_only_at_one_are_recognised(guard: str) -> None:
    assert excludes_only_one(guard)


@pytest.mark.parametrize(
    "guard",
    [
        f"{X} != 3", f"{X} == {Y}", f"({X} % 4) == 0", f"{X} <= 512", f"{X} >= 3", f"{X} != 1000", "True",
        "not python (", f"f({X}) != 1", f"{X} != {Y}",
    ],
)  # fmt: skip
def test_every_other_condition_stays(guard: str) -> None:
    assert not excludes_only_one(guard)


@pytest.mark.parametrize(
    ("condition", "sizes", "expected"),
    [
        (f"min({X}, {Y} // 2) == 3", {X: 4, Y: 7}, True),
        (f"not ({X} < 2 or {Y} % 3 != 0)", {X: 2, Y: 9}, True),
        (f"({X} > 0 and -{Y} > 0) or {X} == 5", {X: 4, Y: 7}, False),
        ("2*s0 - max(s0, s1) >= s1", {"s0": 4, "s1": 3}, True),
    ],
)
def test_a_condition_is_asked_of_sizes(condition: str, sizes: dict[str, int], expected: bool) -> None:
    assert holds(condition, sizes) is expected


@pytest.mark.parametrize("condition", ["s0 ** 2 == 4", "f(s0) == 1", "s0 == 'a'", "0 < s0 < 9", "s0 == unknown"])
def test_what_is_no_plain_arithmetic_is_refused(condition: str) -> None:
    with pytest.raises(NotImplementedError):
        holds(condition, {"s0": 2})


def test_a_condition_is_read_once_however_many_sizes_it_is_asked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    parse = ast.parse
    monkeypatch.setattr(ast, "parse", lambda *args, **kwargs: read.append(args) or parse(*args, **kwargs))
    assert [holds(f"{X} % 7 == 6", {X: size}) for size in range(100)].count(True) == 14
    assert len(read) == 1
