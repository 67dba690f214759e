"""The way of the keyboard at 200 % and in a small window. On request: pytest -m benchmark."""

from __future__ import annotations

import pytest

from tests.flows.real_input.test_keyboard import example_by_keys

pytestmark = [pytest.mark.benchmark, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.mark.parametrize(("name", "size", "scale"), [("double", (1920, 1080), 2.0), ("small", (1024, 700), 1.0)])
def test_the_example_becomes_a_file_on_every_screen(person_at, name, size, scale):
    example_by_keys(person_at(name, size, scale=scale))
