"""Two runs, the window closed and started again, and the two compared from the history."""

import pytest

from tests.flows.real_input.journeys import run_by_keys, write_model
from tests.flows.real_input.person import Person

# The parts of this journey are tried in tests/gui/panels/history, and real keys in test_keyboard.py.
pytestmark = [pytest.mark.full, pytest.mark.slow, pytest.mark.timeout(600)]


def test_a_against_b_after_a_restart(person_at):
    compare_after_restart(person_at("comparison"))


def compare_after_restart(person: Person) -> None:
    """Two runs, a restart, and the difference in the panels."""
    recipe = write_model(person.folder / "model")
    person.start(recipe)
    person.click("Trust: next")
    person.find("Run: next")
    run_by_keys(person)
    person.press("alt+2")
    person.press("Home", "Down")  # not from the goal, but fp32
    person.find("Plan: open")
    run_by_keys(person)
    person.quit()

    person.start(recipe)
    person.find("Run: next")
    person.press("alt+y")
    person.find("Past runs", role="Table")
    person.tab_to("Past runs|20[0-9][0-9]-")
    person.press("Home", "ctrl+Home", "shift+Down")
    person.tab_to("Compare$")
    person.press("space")
    person.find("Back to the present", role="Button")
    person.reads("difference of A and B")
    person.shoot("difference")
    person.press("alt+5")
    person.reads("int8-dynamic")
    person.press("alt+8")
    person.press("alt+2")
    person.press("ctrl+shift+d")
    person.find("Show the difference", role="Button")
    person.quit()
