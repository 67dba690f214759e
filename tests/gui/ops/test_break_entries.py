"""Places where the capture stops, as one list: failures, graph breaks, and subgraphs that stay eager."""

import pytest

from ace_studio.gui.ops.break_entries import is_same_place, parse_place
from tests.gui.breaking import FILE


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("model.py:3, layers.0", ("model.py", 3)),
        ("C:\\m\\a.py:12", ("C:\\m\\a.py", 12)),
        ("model.py", None),
        ("", None),
        ("a:b.py:4:1", ("a:b.py", 4)),
    ],
)
def test_a_place_is_read_from_its_words(where, expected):
    assert parse_place(where) == expected


def test_places_are_the_same_line_with_or_without_the_folder():
    assert is_same_place(("net.py", 3), (FILE, 3))
    assert not is_same_place(("et.py", 3), (FILE, 3))
    assert not is_same_place((FILE, 0), (FILE, 0))
