"""The looks and the words of the window: colours, stylesheet, icons and language."""

from ace_studio.gui.style.icons import stroke_icon, stroke_pixmap
from ace_studio.gui.style.language import install_language, number, numbers, told, tr, translate_fields
from ace_studio.gui.style.theme import (
    DARK,
    INK_ON_DARK,
    INK_ON_LIGHT,
    LIGHT,
    STRONG,
    STYLE,
    THEMES,
    Colours,
    Theme,
    monospace,
)
