"""The stylesheet: looks that a palette cannot express. Ordinary controls keep the look of the style."""

from __future__ import annotations

import re

from ace_studio.gui.style.colours import Colours
from ace_studio.gui.style.sizes import NAME_PT, STRONG, TITLE_PT
from ace_studio.records.places import resource_folder


def stylesheet(colours: Colours) -> str:
    """The application's stylesheet in the colours of a theme: ``resources/window.qss`` with its names replaced."""
    values = {name: value for name, value in vars(colours).items() if isinstance(value, str)}
    values |= {"strong": str(STRONG), "title": str(TITLE_PT), "name_size": str(NAME_PT)}
    values |= {"icons": (resource_folder() / "icons").as_posix(), "tone": "on-dark" if colours.is_dark else "on-light"}
    template = (resource_folder() / "window.qss").read_text(encoding="utf-8")
    return re.sub(r"\{(\w+)\}", lambda found: values[found[1]], template)
