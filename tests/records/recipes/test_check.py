"""Keys and types of a recipe: each mistake is named at its line."""

import pytest

from tests.records.recipe_problems import MINIMAL, problems_of


@pytest.mark.parametrize(
    ("lines", "line", "words"),
    [
        ("[goal]\nmax_drop = nan", 5, "finite"),
        ("[goal]\noptimize = 'speed'", 5, "something to optimize"),
        ("[goal]\nthreads = 4", 5, "it belongs in [measure]"),
        ("[measure]\nrounds = true", 5, "true/false"),
        ("[measure]\nrounds = 2.5", 5, "a number"),
        ("[measure]\nthreads = 'some'", 5, "'all'"),
        ("[measure]\nthreads = true", 5, "true/false"),
        ("[measure]\nrounds = 99999999999999999999", 5, "too large"),
        ("[[capture.controls]]\nfunction = 'f'", 4, "has no 'as'"),
        ("[[capture.controls]]\nfunction = 'f'\nas = 'leef'", 6, "did you mean 'leaf'"),
        ("[targets]\nnames = 'auto'", 5, "a list"),
        ("[evaluate]\nfunction = 3", 5, "a whole number"),
        ("[evaluate]\nhigher_is_better = 'yes'", 5, "true or false"),
        ("[inputs]\nrows = [{ x = 3 }]", 5, "a table"),
        ("[inputs]\nrows = [{ x = { shape = [1.5] } }]", 5, "a whole number"),
        ("[inputs]\nrows = [{ x = { dtype = 'float32' } }]", 5, "has no 'shape'"),
        ("[inputs.dims]\n'x.0' = 'dinamic'", 5, "did you mean 'dynamic'"),
        ("[plan]\nrules = 3", 5, "a list"),
        ("[modle]\nsource = 'x'", 4, "did you mean 'model'"),
        ("[goal]\nmax_drop = 1979-05-27", 5, "a date or time"),
    ],
)
def test_a_wrong_key_or_type_is_named_where_it_is(lines, line, words):
    ((found_line, text),) = problems_of(MINIMAL + lines + "\n")
    assert found_line == line
    assert words in text
