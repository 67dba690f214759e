"""The stylesheet: looks that a palette cannot express. Ordinary controls keep the look of the style."""

from __future__ import annotations

from string import Template

from ace_studio.gui.style.colours import Colours
from ace_studio.gui.style.sizes import NAME_PT, STRONG, TITLE_PT
from ace_studio.records.places import resource_folder


def stylesheet(colours: Colours) -> str:
    """The application's stylesheet in the colours of a theme."""
    sizes = {"strong": STRONG, "title": TITLE_PT, "name_size": NAME_PT}
    values = sizes | {name: value for name, value in vars(colours).items() if isinstance(value, str)}
    icons = (resource_folder() / "icons").as_posix()
    template = Template((resource_folder() / "window.qss").read_text(encoding="utf-8"))
    return template.substitute(values | {"icons": icons, "tone": "on-dark" if colours.is_dark else "on-light"})
