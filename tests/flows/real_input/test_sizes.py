"""Every journey again at 200 % and in a small window. On request: pytest -m benchmark."""

from functools import partial

import pytest

from tests.flows.real_input.test_comparison import compare_after_restart
from tests.flows.real_input.test_fix import fix_by_clicks
from tests.flows.real_input.test_keyboard import example_by_keys
from tests.flows.real_input.test_sources import SOURCES, file_by_clicks

pytestmark = [pytest.mark.benchmark, pytest.mark.slow, pytest.mark.timeout(900)]

JOURNEYS = {
    "keyboard": example_by_keys,
    "fix": fix_by_clicks,
    "comparison": compare_after_restart,
    **{come.__name__: partial(file_by_clicks, come=come) for come in SOURCES},
}


@pytest.mark.parametrize("journey", JOURNEYS)
@pytest.mark.parametrize(("name", "size", "scale"), [("double", (1920, 1080), 2.0), ("small", (1024, 700), 1.0)])
def test_a_journey_ends_well_on_every_screen(person_at, journey, name, size, scale):
    JOURNEYS[journey](person_at(f"{name}-{journey}", size, scale=scale))
