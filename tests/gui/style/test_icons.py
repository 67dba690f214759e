"""Icons in the colour of the theme."""

import pytest

from ace_studio.gui.style.icons import _STROKES, stroke_icon, stroke_pixmap


@pytest.mark.parametrize("name", _STROKES)
def test_every_icon_is_drawn_in_its_colour(qapp, name):
    image = stroke_pixmap(name, "#ff0000", size=24, pixel_ratio=2.0).toImage()
    assert image.width() == 48
    shades = [image.pixelColor(x, y) for x in range(48) for y in range(48)]
    assert any(shade.alpha() > 200 and shade.red() > 200 and shade.green() < 50 for shade in shades)


def test_an_unknown_icon_is_a_mistake(qapp):
    with pytest.raises(KeyError):
        stroke_icon("no such icon", "#ff0000", "#00ff00")
