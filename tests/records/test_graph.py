"""The table of a captured graph."""

from tests.gui.graph_tables import table_of


def test_only_rows_that_compute_count_as_ops():
    table = table_of([("x", "input", ""), ("a", "aten.relu.default", ""), ("y", "output", "")])
    assert len(table) == 3
    assert list(table.op_rows()) == [1]
    assert table.op_count == 1
