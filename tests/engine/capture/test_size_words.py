"""Conditions on sizes, as a person says them."""

from __future__ import annotations

import pytest

from ace_studio.engine.capture.size_words import condition_in_words

X, Y = "L['x'].size()[2]", "L['y'].size()[0]"


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        (f"({X} % 4) == 0", "x.2 is a multiple of 4"),
        (f"(64*({X} // 4)*{Y}) == (16*{X}*{Y})", "x.2 is a multiple of 4"),
        (f"1 < 3*{X}*{Y}", ""),
        (f"{X} >= 7", "x.2 is at least 7"),
        (f"2*{X} == {Y}", "as it stands"),
        (f"{X}.is_odd()", "as it stands"),
        (f"(16 // ({X} - 3)) == 1", "as it stands"),
    ],
)
def test_a_condition_is_said_in_words_where_there_are_any(condition: str, words: str) -> None:
    sizes = {X: 8, Y: 6}
    assert condition_in_words(condition, sizes, size=X, name="x.2", shown="as it stands") == words
