"""Finds ops by the words in their columns."""

from __future__ import annotations

import time

import pytest

from ace_studio.gui.graph_view.search import SearchIndex
from tests.gui.graph_tables import large_table


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


def test_searching_fifty_thousand_ops_takes_less_than_the_blink_of_an_eye():
    index = SearchIndex(large_table(50_000))
    spent = []
    for query in ("conv", "op:conv module:stage3", "/relu_.*9/"):
        start = time.process_time()
        assert index.find(query)
        spent.append(time.process_time() - start)
    assert max(spent) < 0.25  # 50 ms on a quiet machine; the limit here only catches a change of order
