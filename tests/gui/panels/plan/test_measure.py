"""The form for measuring, which holds for every target and the baseline."""

from __future__ import annotations

from tests.gui.gestures import choose


def test_threads_rounds_and_device_are_one_choice_for_all_targets(desk, example_plan):
    example_plan.measure.threads.setValue(0)
    example_plan.measure.rounds.setValue(50)
    choose(desk, example_plan.measure.device, "CPU")
    measure = desk.document.recipe.measure
    assert (measure.threads, measure.rounds, measure.device) == ("all", 50, "cpu")
