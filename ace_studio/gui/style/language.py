"""The language of the window: English texts in the source, other languages in packs of JSON.

The language is installed before the modules of the window are imported (`shell/start.py`), so tables of texts may call
`tr` when they are made. Texts with values are templates: ``tr("{count} selected", count=3)``.

Numbers are written with the separators of the language: `number`, values of `tr`, and the fields of `widgets/fields`.
Problems come from other layers and processes as whole sentences; `told` finds those that a pack has, with the values in
them.

A pack for a language that is written from right to left mirrors the window. Figures, code and paths keep their
direction, which their widgets set: "3.60 - 4.80 ms" would be read backwards.
"""

import re
from collections.abc import Iterable
from functools import cached_property
from string import Formatter

import msgspec
from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QTranslator
from PySide6.QtGui import QGuiApplication

from ace_studio.records.places import resource_folder


def tr(text: str, /, **values: object) -> str:
    """The text in the chosen language, or itself if no pack has it; with values, they are put into its braces."""
    found = QCoreApplication.translate("ace", text)
    return _FORMATTER.vformat(found, (), values) if values else found


class _Formatter(Formatter):
    """Writes numbers in templates with the separators of the language."""

    def format_field(self, value: object, format_spec: str) -> str:
        return number(value, format_spec) if isinstance(value, int | float) else format(value, format_spec)


_FORMATTER = _Formatter()


def number(value: float, form: str) -> str:
    """A number as Python writes it in this form (``,.2f``), with the separators of the chosen language."""
    text, locale = format(value, form), QLocale()
    if locale.decimalPoint() == ".":
        return text
    return text.translate({ord("."): locale.decimalPoint(), ord(","): locale.groupSeparator()})


def numbers(values: Iterable[float], form: str) -> str:
    """Numbers one after the other; with semicolons where a comma is part of them."""
    return (", " if QLocale().decimalPoint() == "." else "; ").join(number(value, form) for value in values)


def told(sentence: str) -> str:
    """A sentence that was made elsewhere, such as what went wrong, in the chosen language; itself if no pack has it."""
    application = QCoreApplication.instance()
    pack = application.findChild(Translator) if application is not None else None
    return pack.told(sentence) if isinstance(pack, Translator) else sentence


def translate_fields(row: object, *names: str) -> None:
    """Translate texts of a frozen row; its ``__post_init__`` calls this, so that a table needs no `tr` in each line."""
    for name in names:
        object.__setattr__(row, name, tr(getattr(row, name)))


class _Pack(msgspec.Struct, frozen=True):
    locale: str
    """As `QLocale` names it: ``de``."""
    texts: dict[str, str]
    sentences: dict[str, str] = {}
    """Sentences of other layers, with ``{0}``, ``{1}`` for their values."""


class Translator(QTranslator):
    """The texts of one pack."""

    def __init__(
        self, texts: dict[str, str], parent: QCoreApplication, sentences: dict[str, str] | None = None
    ) -> None:
        super().__init__(parent)
        self._texts = texts
        self._sentences = sentences or {}

    @cached_property
    def _patterns(self) -> list[tuple[re.Pattern[str], str]]:
        """Sentences with values; those with the most words of their own first."""
        with_values = sorted((text for text in self._sentences if "{" in text), key=len, reverse=True)
        return [
            (re.compile("(.+?)".join(map(re.escape, re.split(r"\{\d+\}", text))), re.DOTALL), self._sentences[text])
            for text in with_values
        ]

    def told(self, sentence: str) -> str:
        """The translation of a whole sentence, with the values that are in it."""
        if sentence in self._sentences:
            return self._sentences[sentence]
        for pattern, other in self._patterns:
            if (found := pattern.fullmatch(sentence)) is not None:
                return other.format(*found.groups())
        return sentence

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
        application.installTranslator(Translator(pack.texts, application, pack.sentences))
        QLocale.setDefault(QLocale(pack.locale))
        if isinstance(application, QGuiApplication):
            application.setLayoutDirection(QLocale(pack.locale).textDirection())
        own_of_qt, folder = QTranslator(application), QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)
        if own_of_qt.load(QLocale(pack.locale), "qtbase", "_", folder):
            application.installTranslator(own_of_qt)
