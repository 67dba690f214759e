"""Folders of this user that nobody else may look into, whatever the umask is. Standard library only."""

import os
from pathlib import Path

from ace_studio.records.places import APP_NAME


def make_private(folder: Path) -> None:
    """Make a folder with its parents, open to this user alone; one of this user's that is open to others is narrowed.

    Raises: OSError.
    """
    for missing in reversed([one for one in (folder, *folder.parents) if not one.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)
    for own in (folder, folder.parent) if folder.parent.name == APP_NAME else (folder,):
        status = own.stat()
        if os.name == "posix" and status.st_uid == os.getuid() and status.st_mode & 0o077:
            own.chmod(0o700)
