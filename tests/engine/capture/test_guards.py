"""Which conditions of a graph may be tried without."""

from __future__ import annotations

import pytest

from ace_studio.engine.capture.guards import excludes_only_one

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
