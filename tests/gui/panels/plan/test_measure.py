"""The form for measuring, which holds for every target and the baseline."""

from PySide6.QtCore import Qt

from tests.gui.gestures import choose


def test_threads_rounds_and_device_are_one_choice_for_all_targets(desk, example_plan):
    example_plan.measure.threads.setValue(0)
    example_plan.measure.rounds.setValue(50)
    choose(desk, example_plan.measure.device, "CPU")
    measure = desk.document.recipe.measure
    assert (measure.threads, measure.rounds, measure.device) == ("all", 50, "cpu")


def test_threads_are_a_number_or_a_word_that_is_typed(desk, example_plan):
    box = example_plan.measure.threads
    for typed, threads in (("best", "best"), ("12", 12), ("all", "all")):
        box.selectAll()
        desk.bot.keyClicks(box, typed)
        desk.bot.keyClick(box, Qt.Key.Key_Return)
        desk.settle()
        assert desk.document.recipe.measure.threads == threads
        assert box.text() == typed
