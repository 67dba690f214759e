import pytest

from ace_studio.records.results.words import megabytes


@pytest.mark.parametrize(("size", "words"), [(None, ""), (1_234_567, "1.235 MB"), (0, "0.000 MB")])
def test_sizes_are_given_in_megabytes(size, words):
    assert megabytes(size) == words
