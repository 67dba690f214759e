"""The examples that a run does worst on, as a table."""

from tests.gui.charting import open_chart


def test_the_worst_samples_are_those_of_the_selected_run(desk, charts):
    view = open_chart(desk, charts, "worst")
    assert [list(column.values) for column in view.model.columns][1] == [7]
    desk.session.view.select_run(0)
    desk.settle()
    assert [list(column.values) for column in view.model.columns][1] == [3]
