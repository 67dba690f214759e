"""The table over columns: fast, and right about filters, order and missing values."""

from PySide6.QtCore import Qt
from PySide6.QtTest import QAbstractItemModelTester

from ace_studio.gui.widgets.table_model import Column, ColumnsModel


def small():
    model = ColumnsModel()
    model.set_columns(
        [
            Column(title="name", values=["conv_2", "Conv_10", "relu", "linear"]),
            Column(
                title="ms", values=[3.0, None, 0.5, 12.0], is_number=True, text=lambda v: "-" if v is None else f"{v}"
            ),
        ]
    )
    return model


def shown(model, column=0):
    return [model.data(model.index(row, column)) for row in range(model.rowCount())]


def test_qt_finds_no_fault_with_the_model(qtbot):
    model = small()
    tester = QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    model.set_filter("conv")
    model.sort(1, Qt.SortOrder.DescendingOrder)
    model.set_filter("")
    assert tester.model() is model


def test_numbers_sort_as_numbers_and_what_is_missing_comes_last_in_both_orders():
    model = small()
    model.sort(1, Qt.SortOrder.AscendingOrder)
    assert shown(model) == ["relu", "conv_2", "linear", "Conv_10"]
    model.sort(1, Qt.SortOrder.DescendingOrder)
    assert shown(model) == ["linear", "conv_2", "relu", "Conv_10"]


def test_words_sort_without_regard_to_case_and_no_column_is_the_order_of_the_rows():
    model = small()
    model.sort(0, Qt.SortOrder.AscendingOrder)
    assert shown(model) == ["Conv_10", "conv_2", "linear", "relu"]
    model.sort(-1)
    assert shown(model) == ["conv_2", "Conv_10", "relu", "linear"]


def test_a_filter_wants_every_word_in_any_column():
    model = small()
    model.set_filter("conv 3.0")
    assert shown(model) == ["conv_2"]
    model.set_filter("nothing like it")
    assert model.rowCount() == 0


def test_rows_are_translated_both_ways_through_filter_and_order():
    model = small()
    model.sort(1, Qt.SortOrder.AscendingOrder)
    model.set_filter("conv")
    assert [model.source_row(row) for row in range(model.rowCount())] == [0, 1]
    assert model.view_row(2) == -1
    assert model.view_rows([1, 2, 0]) == [0, 1]


def test_other_columns_keep_filter_and_order():
    model = small()
    model.set_filter("a")
    model.sort(0, Qt.SortOrder.DescendingOrder)
    model.set_columns([Column(title="name", values=["b", "aa", "ab"])])
    assert shown(model) == ["ab", "aa"]


def test_the_filter_is_prepared_in_parts(qapp):
    model = ColumnsModel()
    model.set_columns([Column(title="op", values=[f"Op_{row}" for row in range(12_000)])])
    parts = 0
    while model.prepare_filter():
        parts += 1
    assert parts >= 4
    model.set_filter("op_77")
    assert model.rowCount() == 111
