"""Element types and the rows of the shape table."""

import pytest

from ace_studio.records.tensors import ValueSource, bytes_per_element, read_values


@pytest.mark.parametrize(("dtype", "size"), [("float32", 4), ("bfloat16", 2), ("bool", 1), ("complex128", 16)])
def test_the_bytes_of_an_element(dtype, size):
    assert bytes_per_element(dtype) == size


def test_a_type_without_a_fixed_size_has_none():
    assert bytes_per_element("object") == 0


@pytest.mark.parametrize(
    ("text", "source", "numbers", "plain"),
    [
        ("random", ValueSource.RANDOM, (), None),
        ("random 0..30521", ValueSource.RANDOM, (0, 30521), None),
        ("random -1 … 1e-3", ValueSource.RANDOM, (-1, 1e-3), None),
        ("normal 0.5 0.2", ValueSource.NORMAL, (0.5, 0.2), None),
        ("constant 3", ValueSource.CONSTANT, (3,), None),
        ("value 'it is'", ValueSource.VALUE, (), "it is"),
        ("none", ValueSource.NONE, (), None),
        ("data/random 1.npy", ValueSource.FILE, (), None),
    ],
)
def test_values_are_a_word_with_its_parameters_or_a_file(text, source, numbers, plain):
    assert read_values(text) == (source, numbers, plain)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("random 5", "two numbers"), ("random 9..0", "9 is above 0"), ("normal", "mean"), ("value x", "in quotes"),
        ("zeros 3", "nothing after it"), ("value [1]", "in quotes"),
    ],
)  # fmt: skip
def test_values_with_parameters_that_do_not_fit_say_what_fits(text, why):
    with pytest.raises(ValueError, match=why):
        read_values(text)
