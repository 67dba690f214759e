"""Where a window stood and how large it was, kept for the next time."""

from contextlib import suppress

from PySide6.QtCore import QByteArray
from PySide6.QtWidgets import QWidget

from ace_studio.records.errors import AceError
from ace_studio.session.kept.settings import Settings


def keep_geometry(window: QWidget, settings: Settings, key: str) -> None:
    """Remember it under a key. That it cannot be saved is not worth a message while a window closes."""
    with suppress(AceError):
        settings.remember(key, bytes(window.saveGeometry().toBase64().data()).decode("ascii"))


def restore_geometry(window: QWidget, settings: Settings, key: str) -> None:
    """Restore what `keep_geometry` remembered, if anything."""
    kept = settings.recall(key)
    if isinstance(kept, str):
        window.restoreGeometry(QByteArray.fromBase64(QByteArray(kept.encode())))
