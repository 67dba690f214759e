"""Rows of graph breaks and the entries of the list of breaks."""

from ace_studio.session.seams import break_rows, rows_of_seam, seam_numbers, seam_of_ops
from tests.gui.graph_tables import layered_table, partial_capture


def test_every_break_row_is_one_entry_and_a_line_met_twice_has_two_rows():
    table, capture = partial_capture(4, lines=(10, 20, 10))
    rows = break_rows(table)
    assert len(rows) == 3
    numbers = seam_numbers(table, capture.graph_breaks)
    assert set(numbers) == set(rows)
    assert numbers[rows[0]] == numbers[rows[2]] != numbers[rows[1]]
    assert rows_of_seam(table, capture.graph_breaks, numbers[rows[0]]) == (rows[0], rows[2])


def test_selected_ops_stand_for_a_break_only_if_all_are_its_rows():
    table, capture = partial_capture(3)
    first, second = (table.op_id[row] for row in break_rows(table))
    assert seam_of_ops(table, capture.graph_breaks, [first]) == 0
    assert seam_of_ops(table, capture.graph_breaks, [first, second]) is None
    assert seam_of_ops(table, capture.graph_breaks, [first, table.op_id[1]]) is None
    assert seam_of_ops(None, capture.graph_breaks, [first]) is None


def test_a_whole_graph_has_no_breaks():
    assert break_rows(layered_table(1)) == ()
