"""Texts on boxes."""

import pytest

from ace_studio.gui.graph_view.texts import TextCache


@pytest.fixture
def texts(qapp):
    made = TextCache()
    made.begin_frame()
    return made


def test_a_text_is_laid_out_once_for_the_same_room(texts):
    first, width = texts.get("conv2d", 12, room=200.0)
    assert texts.get("conv2d", 12, room=200.0)[0] is first
    assert width > 0


def test_a_text_without_room_is_shortened(texts):
    shown, width = texts.get("a_very_long_name_of_an_operator", 12, room=60.0)
    assert shown.text().endswith("…")
    assert width <= 64.0


def test_the_first_text_that_fits_is_taken_else_the_last(texts):
    names = ("p13 · layers.0.norm", "p13 · norm", "p13")
    assert texts.fitting(names, 12, room=1000.0) == names[0]
    assert texts.fitting(names, 12, room=1.0) == names[2]


def test_another_application_font_empties_the_cache(texts, qapp):
    texts.get("conv2d", 12, room=200.0)
    texts._family = "another"
    texts.begin_frame()
    assert not texts._texts
