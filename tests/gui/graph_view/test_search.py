"""The search for ops: one grammar for the field above the graph and for the filter of the op table."""

import pytest
from PySide6.QtCore import Qt

from ace_studio.gui.graph_view.search import search_index


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
        ("/^linear_\\d$/ module:layers.2", 1),
        ("module:layers.2 /^linear_\\d$", 1),
        ("/linear_[0 1]/", 2),
        ("/", 0),
        ("", 0),
    ],
)
def test_search_finds_by_words_columns_and_patterns(view, query, expected):
    found = view.search(query)
    assert len(found) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("time>0.5", [1, 2]),
        ("time>=0.5ms", [1, 2, 3]),
        ("time>60%", [2]),
        ("time<0.6ms time>100us", [1, 3]),
        ("flops>1M", [2]),
        ("precision:int8", [2]),
        ("error<20", []),
    ],
)
def test_figures_are_compared_in_their_units_and_as_a_share_of_all(view, query, expected):
    known = {
        "time": [None, 0.55, 9.0, 0.5],
        "flops": [0, 1000, 2_000_000, 0],
        "precision": ["", "fp32", "int8-static", ""],
    }
    table = view.picture.table
    padding = [None] * (len(table) - 4)
    found, problem = search_index(table, ()).find(query, lambda name: known[name] + padding if name in known else ())
    assert (found.nonzero()[0].tolist(), problem) == (expected, "")


@pytest.mark.parametrize("query", ["time>1.2.3", "time>", "colour:red", "precision:int8"])
def test_a_word_that_is_no_comparison_or_about_nothing_known_finds_nothing(view, query):
    assert view.search(query) == ()
    assert view.search_bar.count.text() == "" or "none" in view.search_bar.count.text()


def test_an_unknown_unit_is_said_instead_of_finding_nothing(view):
    view.search("time>3parsec")
    assert "no unit" in view.search_bar.count.text()


@pytest.mark.qt_log_ignore("grabbing the keyboard")
def test_the_name_of_a_column_is_completed_after_other_words(view, qtbot):
    field = view.search_bar.field
    view.focus_search()
    qtbot.keyClicks(field, "gelu mod")
    completer = field.completer()
    assert completer.completionCount() == 1
    qtbot.keyClick(completer.popup(), Qt.Key.Key_Down)
    qtbot.keyClick(completer.popup(), Qt.Key.Key_Return)
    assert field.text() == "gelu module:"
    qtbot.keyClicks(field, "layers.2 ")
    assert completer.completionCount() == 0
    assert view.search_bar.count.text() == "1 found"
