"""The examples and verdicts of A and B in one table."""

import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor

from ace_studio.gui.panels.shapes.table_model import CHIP
from ace_studio.records.recipes.recipe import InputsChoice, ModelChoice, Recipe
from ace_studio.records.results import CaptureReport
from ace_studio.records.tensors import DimFinding, DimVerdict, InputFinding, TensorSpec
from tests.gui.comparing import press, two_records
from tests.gui.gestures import LEFT
from tests.session.fake_engine_link import result

MODEL = ModelChoice(source="net.py", entry="make")
STATIC = DimFinding(index=0, verdict=DimVerdict.STATIC, size=4)
DYNAMIC = DimFinding(index=0, verdict=DimVerdict.DYNAMIC, size=4, symbol="s0", min=1, verified_sizes=(4, 9))


def record(rows, *dims, name="x"):
    findings = (InputFinding(name=name, dtype="float32", dims=dims),)
    capture = CaptureReport(rung="export", ops=2, seconds=1.0, inputs=findings)
    return Recipe(model=MODEL, inputs=InputsChoice(rows=rows)), replace(result(), capture=capture)


def row(size, **more):
    return {"x": TensorSpec(shape=(size,), **more)}


@pytest.fixture
def compared(desk):
    """B has another verdict, another type in the first example, and one example more."""
    two_records(desk, record((row(4), row(5)), STATIC), record((row(4, dtype="float16"), row(5), row(9)), DYNAMIC))
    return desk.panel("shapes").compared


def cell(table, row, column, role=Qt.ItemDataRole.DisplayRole):
    return table.model().index(row, column).data(role)


def test_a_cell_that_differs_says_both_values_in_colour_tooltip_and_for_screen_readers(compared):
    assert (cell(compared, 0, 0), cell(compared, 0, 1)) == ("4", "float32 → float16")
    assert cell(compared, 0, 1, Qt.ItemDataRole.ToolTipRole) == "A: float32\nB: float16"
    assert cell(compared, 0, 1, Qt.ItemDataRole.AccessibleTextRole) == "x dtype: differs: A: float32, B: float16"
    assert cell(compared, 0, 1, Qt.ItemDataRole.ForegroundRole).color() == QColor(compared._chips.colours.warn)
    assert cell(compared, 0, 0, Qt.ItemDataRole.ForegroundRole) is None


def test_an_example_that_one_side_has_is_marked_as_a_whole(desk, compared):
    titles = [compared.model().headerData(at, Qt.Orientation.Vertical) for at in range(4)]
    assert titles == ["example 1", "example 2", "example 3, only in B", "verdict"]
    assert cell(compared, 2, 0) == "9"
    assert cell(compared, 2, 0, Qt.ItemDataRole.AccessibleTextRole) == "x · 0: 9, differs: only in B"
    press(desk, "Swap")
    assert compared.model().headerData(2, Qt.Orientation.Vertical) == "example 3, only in A"
    assert cell(compared, 0, 1) == "float16 → float32"


def test_another_verdict_is_marked_in_its_chip_and_a_click_changes_nothing(desk, compared):
    assert cell(compared, 3, 0, CHIP).text == "static 4 → dynamic s0 ≥ 1"
    assert cell(compared, 3, 0, Qt.ItemDataRole.ToolTipRole).startswith("A: static 4\nB: dynamic s0 ≥ 1\n")
    assert cell(compared, 4, 0) == "– → 4, 9"
    panel = desk.panel("shapes")
    assert panel._source.text() == "A and B differ in 4 cells  ·  A: 2 examples  ·  B: 3 examples"
    before, problems = desk.document.recipe, desk.document.problems
    for at in (0, 3):
        place = compared.visualRect(compared.model().index(at, 0)).center()
        desk.bot.mouseClick(compared.viewport(), LEFT, pos=place)
        desk.bot.mouseDClick(compared.viewport(), LEFT, pos=place)
    desk.settle()
    assert (desk.document.recipe, desk.document.problems) == (before, problems)
    assert not panel.add_row_button.isVisible()


def test_an_input_of_one_side_has_its_columns_and_the_present_comes_back(desk):
    two_records(desk, record((), STATIC), record((), DYNAMIC, name="y"))
    panel = desk.panel("shapes")
    table = panel.compared
    assert [one.title for one in table.columns] == ["x · 0", "x dtype", "y · 0", "y dtype"]
    assert [cell(table, 0, at) for at in range(4)] == ["4 → –", "float32 → –", "– → 4", "– → float32"]
    assert [cell(table, 1, at, CHIP).text for at in (0, 2)] == ["static 4 → –", "– → dynamic s0 ≥ 1"]
    place = dict(table.groups.group_places())["y"].center()
    desk.bot.mouseClick(table.groups.viewport(), LEFT, pos=place)
    assert [one.title for one in table.columns][2:] == ["y folded"]
    press(desk, "Back to the present")
    assert (panel.table.isHidden(), table.isHidden()) == (False, True)


def test_of_a_side_that_was_not_traced_no_verdict_is_called_a_difference(desk):
    recipe, found = record((row(4),), DYNAMIC)
    two_records(desk, (recipe, replace(found, capture=None)), (recipe, found))
    table = desk.panel("shapes").compared
    assert cell(table, 1, 0, CHIP).text == "dynamic s0 ≥ 1"
    assert table.pairs.differing == 0
