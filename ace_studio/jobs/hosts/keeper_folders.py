"""Folders of a job on a host, below the session's folder."""

from __future__ import annotations

from hashlib import sha256

import msgspec

from ace_studio.records.bundle import Bundle

OUTPUT = "output"
"""What a job writes, below its number."""


def files_folder(bundle: Bundle) -> str:
    """The root of what was sent. Jobs of the same files share it: a capture is found again by the path of its model."""
    return f"files-{sha256(msgspec.msgpack.encode(bundle.files)).hexdigest()[:32]}"
