"""The language of the window: English texts in the source, other languages in packs of JSON.

The language is installed before the modules of the window are imported (`shell/start.py`), so tables of texts may call
`tr` when they are made. Texts with values are templates: ``tr("{count} selected", count=3)``.

A pack for a language that is written from right to left mirrors the window. Figures, code and paths keep their
direction, which their widgets set: "3.60 - 4.80 ms" would be read backwards.
"""

from __future__ import annotations

import msgspec
from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QTranslator
from PySide6.QtGui import QGuiApplication

from ace_studio.records.places import resource_folder


def tr(text: str, /, **values: object) -> str:
    """The text in the chosen language, or itself if no pack has it; with values, they are put into its braces."""
    found = QCoreApplication.translate("ace", text)
    return found.format(**values) if values else found


def translate_fields(row: object, *names: str) -> None:
    """Translate texts of a frozen row; its ``__post_init__`` calls this, so that a table needs no `tr` in each line."""
    for name in names:
        object.__setattr__(row, name, tr(getattr(row, name)))


class _Pack(msgspec.Struct, frozen=True):
    locale: str
    """As `QLocale` names it: ``de``."""
    texts: dict[str, str]


class Translator(QTranslator):
    """The texts of one pack."""

    def __init__(self, texts: dict[str, str], parent: QCoreApplication) -> None:
        super().__init__(parent)
        self._texts = texts

    def isEmpty(self) -> bool:  # noqa: N802 - Qt's name
        """Qt does not install an empty one."""
        return not self._texts

    def translate(self, context: str, text: str, disambiguation: str | None = "", n: int = -1) -> str:
        """None, not "", where the pack does not have it: Qt would take "" for the translation of its own texts."""
        del disambiguation, n
        return self._texts.get(text) if context == "ace" else None  # type: ignore[return-value]


def install_language(name: str, application: QCoreApplication) -> None:
    """Use the pack ``languages/NAME.json``, and Qt's own for its file dialogs and context menus; before any widget."""
    path = resource_folder() / "languages" / f"{name}.json"
    if path.is_file():
        pack = msgspec.json.decode(path.read_bytes(), type=_Pack)
        application.installTranslator(Translator(pack.texts, application))
        if isinstance(application, QGuiApplication):
            application.setLayoutDirection(QLocale(pack.locale).textDirection())
        own_of_qt, folder = QTranslator(application), QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)
        if own_of_qt.load(QLocale(pack.locale), "qtbase", "_", folder):
            application.installTranslator(own_of_qt)
