"""What a host for the engine has, and what it lacks."""

import re

import msgspec

from ace_studio.records.errors import Problem

HOST_WORD = re.compile(r"(?:[\w.][\w.+-]*@)?[\w\[][\w.:%\]-]*", re.ASCII)
"""``name``, ``user@name``, an address or a name of the ssh configuration. Never an option: none begins with ``-``."""
NEEDED = {
    "msgspec": "msgspec>=0.19,<1",
    "networkx": "networkx>=3.2,<4",
    "numpy": "numpy>=1.26,<3",
    "platformdirs": "platformdirs>=4,<5",
    "psutil": "psutil>=5.9,<8",
    "filelock": "filelock>=3.13,<5",
    "jinja2": "jinja2>=3.1,<4",
    "safetensors": "safetensors>=0.4,<1",
    "scipy": "scipy>=1.11,<2",
    "torch": "torch>=2.11,<2.16",
}
"""Package -> requirement of what an engine cannot do without; a test compares it with the project's metadata."""


class HostReport(msgspec.Struct, frozen=True, kw_only=True):
    """A host, as its Python sees it."""

    host: str
    """Empty: this machine."""
    python: str
    """How the Python was called."""
    executable: str
    """What that is there."""
    version: str
    platform: str
    machine: str
    cores: int
    memory_bytes: int
    cache: str
    """Folder there for the engine's own files."""
    disk_free_bytes: int
    packages: dict[str, str]
    """Package -> version, of those that matter and are installed."""
    missing: tuple[str, ...] = ()
    """Requirements that an engine needs and that are not met."""
    install: str = ""
    """The line that installs what is missing, to be given there."""
    targets: dict[str, str] = {}
    """Target -> the line that installs what it lacks; empty if its packages are there."""
    problems: tuple[Problem, ...] = ()
    """Why no engine can run there; empty if one can."""
    seconds: float = 0.0
    """From the call of ssh to its end."""
