"""A screen and a person for every journey."""

from collections.abc import Callable, Iterator

import pytest

from tests.flows.real_input.person import Person
from tests.flows.real_input.screen import Screen

SIZE = (1280, 800)


@pytest.fixture
def person_at(tmp_path, forked_engines) -> Iterator[Callable[..., Person]]:
    """Makes a person at a screen of a size, with a scale of the window; all of it ends with the test."""
    opened: list[Screen | Person] = []

    def make(name: str, size: tuple[int, int] = SIZE, *, scale: float = 1.0) -> Person:
        screen = Screen(tmp_path / "screen", size)
        opened.append(screen)
        person = Person(screen, tmp_path / name, engines=forked_engines.address, scale=scale)
        opened.append(person)
        return person

    yield make
    for each in reversed(opened):
        each.close()
