"""The problems of a recipe's text, for tests: lines and texts."""

import pytest

from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.file import parse_recipe

MINIMAL = 'format = 1\n[model]\nsource = "model.py"\n'


def problems_of(text: str) -> list[tuple[int, str]]:
    """Line and text (all parts) of each problem."""
    with pytest.raises(AceError) as caught:
        parse_recipe(text, name="r.toml")
    assert {problem.code for problem in caught.value.problems} == {ErrorCode.RECIPE}
    assert all(problem.remedy for problem in caught.value.problems)
    return [(int(problem.where.removeprefix("r.toml:")), problem.as_text()) for problem in caught.value.problems]
