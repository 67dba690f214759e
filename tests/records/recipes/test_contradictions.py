"""Values of a recipe that do not fit together."""

import pytest

from tests.records.recipe_problems import MINIMAL, problems_of


@pytest.mark.parametrize(
    ("lines", "line", "words"),
    [
        ("[evaluate]\nmetric = 'top-1'", 5, "has no data"),
        ("[evaluate]\ndata = 'held_out.npz'", 5, "no metric"),
        ("[evaluate]\nfunction = 'score'\nmetric = 'mse'\ndata = 'held_out'", 6, "both a function and a metric"),
        ("[measure]\ndecode = { tokens = 8 }", 5, "which input takes the token"),
        ("[engine]\npython = '/opt/python'", 5, "but no host"),
        ("[engine]\nhost = '-oProxyCommand=x'", 5, "is not the name of a host"),
        ("[inputs]\nrows = [{}]", 5, "is empty"),
        ("[[inputs.rows]]\nx = { shape = [1] }\n[[inputs.rows]]\ny = { shape = [1] }", 6, "the first row gives x"),
        ("[inputs]\ntracing = 'f'\n[[inputs.rows]]\nx = { shape = [1] }", 6, "both tracing inputs and rows"),
        ("[inputs.dims]\n'x' = 'dynamic'", 5, "does not name a dimension"),
        ("[targets.sizes]\n'x' = [1, 2, 4]", 5, "does not name a dimension"),
        ("[inputs]\nrows = [{ x = { shape = [1] } }]\ndims = { 'y.0' = 'auto' }", 6, "no row gives an input 'y'"),
        ("[inputs]\nrows = [{ x = { shape = [1] } }]\ndims = { 'x.1' = 'auto' }", 6, "has 1 dimensions"),
    ],
)
def test_a_contradiction_is_named_where_it_is(lines, line, words):
    ((found_line, text),) = problems_of(MINIMAL + lines + "\n")
    assert found_line == line
    assert words in text


def test_a_missing_source_says_what_to_write():
    ((line, text),) = problems_of("format = 1\n[model]\nentry = 'f'\n")
    assert (line, "names no model" in text) == (2, True)


def test_a_table_of_a_wrong_type_is_reported_once_and_not_as_missing():
    ((_, text),) = problems_of("format = 1\nmodel = 3\n")
    assert "a table" in text
