"""The stylesheet: looks that a palette cannot express. Ordinary controls keep the look of the style."""

from __future__ import annotations

from ace_studio.gui.style.colours import Colours
from ace_studio.gui.style.sizes import NAME_PT, STRONG, TITLE_PT
from ace_studio.records.places import resource_folder


def stylesheet(colours: Colours) -> str:
    """The application's stylesheet in the colours of a theme."""
    sizes = {"strong": STRONG, "title": TITLE_PT, "name_size": NAME_PT}
    values = sizes | {name: value for name, value in vars(colours).items() if isinstance(value, str)}
    resources = resource_folder()
    icons, template = (resources / "icons").as_posix(), (resources / "window.qss").read_text(encoding="utf-8")
    return template.format_map(values | {"icons": icons, "tone": "on-dark" if colours.is_dark else "on-light"})
