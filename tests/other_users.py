"""Another user of the machine, who does not like us: played by root, who may give files away."""

import os
from pathlib import Path

import pytest

STRANGER = 4242
"""Number of a user that no machine has."""
as_root = pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can give files away")
posix = pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")


def give_away(path: Path, owner: int = STRANGER) -> Path:
    """Let a file or a folder be the stranger's."""
    os.chown(path, owner, owner, follow_symlinks=False)
    return path


def folder_of_everybody(path: Path, mode: int = 0o1777) -> Path:
    """A folder as ``/tmp`` is; without the sticky bit anybody can replace what is in it."""
    path.mkdir()
    path.chmod(mode)
    return path
