"""Ranges and known words of single values in a recipe."""

import pytest

from tests.records.recipe_problems import MINIMAL, problems_of


@pytest.mark.parametrize(
    ("lines", "line", "words"),
    [
        ("[goal]\nmax_drop = -0.1", 5, "at least 0"),
        ("[goal]\nmax_latency_ratio = 0", 5, "above 0"),
        ("[goal]\nmax_size_mb = -1", 5, "above 0"),
        ("[measure]\nrounds = 0", 5, "at least 1"),
        ("[measure]\ndevice = 'gpu'", 5, "not a device"),
        ("[calibration]\nsamples = 0", 5, "at least 1"),
        ("[capture]\nrungs = ['exprot']", 5, "did you mean 'export'"),
        ("[capture]\nrungs = []", 5, "names no capture method"),
        ("[capture]\nrungs = ['fx', 'fx']", 5, "twice"),
        ("[capture]\ntime_limit_s = 0", 5, "above 0"),
        ("[targets]\nnames = []", 5, "names no target"),
        ("[evaluate]\nfunction = 'a b'", 5, "does not name a function"),
        ("[evaluate]\nmetric = 'top1'\ndata = 'held_out'", 5, "is not a metric"),
        ("[evaluate]\nmetric = 'mse'\ndata = 'a b.csv'", 6, "neither a function nor a file"),
        ("[measure]\nbatches = [1, 0]", 5, "at least 1"),
        ("[measure]\ndecode = { token = 'x', tokens = 1 }", 5, "two tokens"),
        ("[inputs]\nrows = [{ x = { shape = [-1] } }]", 5, "cannot be negative"),
        ("[inputs]\nrows = [{ x = { shape = [1], dtype = 'float31' } }]", 5, "did you mean 'float32'"),
        ("[inputs]\nrows = [{ x = { shape = [1], values = 'zeroes' } }]", 5, "did you mean 'zeros'"),
        ("[inputs]\nrows = [{ x = { shape = [1], values = 'file' } }]", 5, "the file's path"),
        ("[inputs]\nrows = [{ x = { shape = [1], values = 'random 9..0' } }]", 5, "9 is above 0"),
        ("[targets]\nsizes = { 'x.0' = [4, 2, 8] }", 5, "three sizes in rising order"),
        ("[plan]\nrules = [{ match = 'type:', precision = 'fp32' }]", 5, "nothing after the colon"),
    ],
)
def test_a_value_out_of_its_range_is_named_where_it_is(lines, line, words):
    ((found_line, text),) = problems_of(MINIMAL + lines + "\n")
    assert found_line == line
    assert words in text
