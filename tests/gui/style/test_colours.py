"""Every colour of the window and of its graph in one place: palettes for light, dark and high contrast."""

import pytest

from ace_studio.gui.graph_view.colours import text_on
from ace_studio.gui.style.theme import THEMES
from ace_studio.records.ops import OpFamily
from tests.gui.seeing import DEUTERANOPIA, NORMAL, PROTANOPIA, contrast, difference, nearest

GROUNDS = ("window", "surface", "raised", "accent_fill", "info_fill", "good_fill", "warn_fill", "bad_fill")
themes = pytest.mark.parametrize("colours", THEMES.values(), ids=THEMES.keys())


def test_contrast_and_difference_agree_with_published_values():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
    assert difference("#ff0000", "#00ff00") == pytest.approx(86.6, abs=0.1)
    assert difference("#ff0000", "#0000ff") == pytest.approx(52.88, abs=0.01)


@themes
def test_text_has_a_contrast_of_4_5_on_every_ground(colours):
    inks = ("text", "text_dim", "accent", "good", "warn", "bad")
    pairs = {
        (ink, ground): contrast(getattr(colours, ink), getattr(colours, ground)) for ink in inks for ground in GROUNDS
    }
    assert {pair: ratio for pair, ratio in pairs.items() if ratio < 4.5} == {}
    assert contrast(colours.on_accent, colours.accent) >= 4.5


@themes
def test_outlines_of_controls_have_a_contrast_of_3(colours):
    grounds = {
        ground: contrast(colours.control, getattr(colours, ground)) for ground in ("window", "surface", "raised")
    }
    assert {ground: ratio for ground, ratio in grounds.items() if ratio < 3} == {}


@themes
def test_edges_and_boxes_of_the_graph_have_a_contrast_of_3_at_every_depth(colours):
    for ground in (colours.window, *colours.frames):
        assert contrast(colours.edge, ground) >= 3
        assert contrast(colours.block_border, ground) >= 3


@themes
def test_text_on_every_fill_of_the_graph_has_a_contrast_of_4_5(colours):
    for fill in (*colours.families, *colours.scale, *colours.precision.values(), colours.block):
        assert contrast(text_on(fill), fill) >= 4.5, fill


@pytest.mark.parametrize("eyes", [NORMAL, DEUTERANOPIA, PROTANOPIA], ids=["all cones", "no green", "no red"])
@themes
def test_kinds_of_ops_and_precisions_are_told_apart_by_any_eyes(colours, eyes):
    assert len(colours.families) == len(OpFamily)
    assert nearest(colours.families, eyes) >= 9
    assert nearest(tuple(dict.fromkeys(colours.precision.values())), eyes) >= 8
