"""By the keyboard alone, from the start page to an artifact on disk."""

import pytest

from tests.flows.real_input.journeys import export_by_keys, run_by_keys, trace_by_keys
from tests.flows.real_input.person import Person

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def example_by_keys(person: Person) -> None:
    """Everything from the start page to the exported file."""
    person.start()
    person.tab_to("Open the example")
    person.press("space")
    trace_by_keys(person)

    person.press("alt+0", "Home", "Down", "Down")
    assert person.focus["name"].startswith("1, Sequential"), "a screen reader hears the block"
    person.press("alt+2")
    person.tab_to("All available targets")
    person.press("space")
    person.shoot("targets")
    for box in ("PyTorch eager", "PyTorch Inductor", "AOTInductor", "OpenVINO"):
        person.tab_to(box)
        if person.focus["checked"]:
            person.press("space")

    run_by_keys(person)
    artifact = export_by_keys(person, "digits.onnx")
    assert artifact.stat().st_size > 100_000
    assert person.clicks == 0
    person.quit()


def test_the_example_becomes_a_file_without_a_mouse(person_at):
    example_by_keys(person_at("keyboard"))
