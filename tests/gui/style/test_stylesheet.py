"""The stylesheet in the colours of a theme."""

import re

import pytest

from ace_studio.gui.style.theme import THEMES, stylesheet


@pytest.mark.parametrize("colours", THEMES.values(), ids=THEMES.keys())
def test_every_theme_fills_the_stylesheet(colours):
    text = stylesheet(colours)
    assert colours.accent in text
    assert "{accent}" not in text
    assert ("on-dark" in text) is colours.is_dark


def test_themes_differ_in_nothing_but_colours():
    bare = {re.sub("#[0-9a-f]+|on-dark|on-light", "", stylesheet(colours)) for colours in THEMES.values()}
    assert len(bare) == 1
