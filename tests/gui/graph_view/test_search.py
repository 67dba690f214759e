"""Finds ops by the words in their columns."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("linear", 6),
        ("LINEAR", 6),
        ("op:gelu", 5),
        ("name:add_3", 1),
        ("module:layers.2", 3),
        ("linear module:layers.2", 1),
        ("dtype:i64", 2),
        ("dtype:float32 op:add", 5),
        ("shape:8x4", 20),
        ("device:cuda", 0),
        ("/add_[0-2]/", 3),
        ("/^linear_\\d$/", 5),
        ("", 0),
    ],
)
def test_search_finds_by_words_columns_and_patterns(view, query, expected):
    found = view.search(query)
    assert len(found) == expected
