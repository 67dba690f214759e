"""A model that does not trace: the fix is tried, its patched copy opened, traced by itself, and run."""

import pytest

from tests.flows.real_input.journeys import BRANCH, write_model
from tests.flows.real_input.person import ENGINE_S, Person

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_a_branch_on_a_value_is_fixed_by_clicks(person_at):
    fix_by_clicks(person_at("fix"))


def fix_by_clicks(person: Person) -> None:
    """From the model that breaks to its patched copy, captured whole."""
    recipe = write_model(person.folder / "model", BRANCH)
    person.start(recipe)
    person.click("Trust: next")
    person.find("Run: next")
    person.click("Trace$", role="Button")
    person.reads("1 break", within_s=ENGINE_S)
    person.click("Graph and source", role="CheckBox")
    person.click("Breaks", role="PageTab")
    person.click("Try fix")
    person.click("Apply to a copy", within_s=ENGINE_S)
    person.reads("net_fixed.py$", within_s=ENGINE_S)
    person.reads("^7 ops$", within_s=ENGINE_S)
    person.reads("Captured whole: no breaks")
    person.shoot("traced")
    person.quit()
    assert (recipe.parent / "net.py").read_text(encoding="utf-8") == BRANCH
