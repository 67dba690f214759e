"""What the HTML reports share: one file each, one style, and nothing from outside unescaped."""

from pathlib import Path

import jinja2

from ace_studio.records.errors import visible
from ace_studio.records.places import resource_folder
from ace_studio.records.results.words import ms_words, ratio_words


def page_environment(folder: Path) -> jinja2.Environment:
    """The templates in a folder; they get the style as ``style``, and the words of latencies and speed-ups."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder), autoescape=True, trim_blocks=True, lstrip_blocks=True, finalize=_shown
    )
    environment.globals["style"] = (resource_folder() / "report.css").read_text(encoding="utf-8")
    environment.filters |= {"ms": ms_words, "ratio": ratio_words}
    return environment


def _shown(value: object) -> object:
    """A text from outside as it may be shown; the escaping of HTML follows."""
    return visible(value) if type(value) is str else value
