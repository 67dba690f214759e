"""The language of the window: packs of translations, and a window in German."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest
from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtWidgets import QAbstractSpinBox, QTableView

from ace_studio.gui.style import language
from ace_studio.gui.style.language import Translator, install_language, tr
from ace_studio.gui.widgets.code_view import CodeView
from tests.gui.window_texts import LANGUAGES, pack, texts_of_window

PACKS = sorted(path.stem for path in LANGUAGES.glob("*.json"))

WINDOW = """
import json, sys
from pathlib import Path
from PySide6.QtWidgets import QAbstractButton, QLabel
from ace_studio.gui.shell import start
from ace_studio.records.places import example_recipe
from ace_studio.session.kept.folders import UserFolders
from ace_studio.session.kept.settings import Settings

folders = UserFolders.inside(Path(sys.argv[1]))
settings = Settings(folders.settings)
settings.set("language", "Deutsch")
application = start.make_application(settings)

from ace_studio.gui.shell.app import Studio

Studio._start_engine = lambda studio: None
studio = Studio(application, folders)
studio.window.resize(1400, 900)
studio.window.show()
studio.session.files.open_path(str(example_recipe()))
for name in ("plan", "history", "charts"):
    studio.window.commands.show_panel(name)
    application.processEvents()
texts = [action.text() for action in studio.window.actions_.by_id.values()]
texts += [action.text() for action in studio.window.menuBar().actions()]
widgets = [one for kind in (QLabel, QAbstractButton) for one in studio.window.findChildren(kind)]
texts += [one.text() for one in widgets if one.isVisible()]
if len(sys.argv) > 2:
    studio.window.grab().save(sys.argv[2])
print(json.dumps(texts))
studio.close()
"""


def placeholders(text: str) -> list[str]:
    return sorted(re.findall(r"\{[^}]*\}", text))


@pytest.mark.parametrize("language", PACKS)
def test_a_pack_translates_nearly_every_text_and_holds_none_that_is_gone(language):
    texts, translated = texts_of_window(), set(pack(language))
    assert not translated - texts
    assert len(translated) >= 0.9 * len(texts)


@pytest.mark.parametrize("language", PACKS)
def test_a_translation_has_the_placeholders_of_its_text(language):
    assert [text for text, other in pack(language).items() if placeholders(text) != placeholders(other)] == []
    assert all(pack(language).values())


def test_a_text_that_the_pack_does_not_have_stays_english_and_values_are_put_in(qapp):
    own = Translator({"{count} selected": "{count} gewählt"}, qapp)
    QCoreApplication.installTranslator(own)
    try:
        assert tr("{count} selected", count=3) == "3 gewählt"
        assert tr("no such text {count}", count=3) == "no such text 3"
        assert QCoreApplication.translate("QPlatformTheme", "Cancel") == "Cancel"
    finally:
        QCoreApplication.removeTranslator(own)


def test_a_window_in_german_shows_german(tmp_path):
    command = [sys.executable, "-c", WINDOW, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, timeout=60, check=True, env=os.environ)
    shown, german = json.loads(done.stdout.splitlines()[-1]), pack("Deutsch")
    assert {german["&File"], german["&Trace"], german["&Open…"]} <= set(shown)
    assert [text for text in shown if german.get(text, text) != text] == []


def test_a_language_from_right_to_left_mirrors_the_window_but_not_figures_code_and_paths(
    qapp, desk, tmp_path, monkeypatch
):
    (tmp_path / "languages").mkdir()
    (tmp_path / "languages" / "Hebrew.json").write_text('{"locale": "he", "texts": {}}', encoding="utf-8")
    monkeypatch.setattr(language, "resource_folder", lambda: tmp_path)
    right, left = Qt.LayoutDirection.RightToLeft, Qt.LayoutDirection.LeftToRight
    desk.open_example()
    for name in ("plan", "history", "ops", "source"):
        desk.do(f"show-{name}")
    try:
        install_language("Hebrew", qapp)
        desk.settle()
        assert desk.window.layoutDirection() is right
        panel = desk.window.workbench.panel("model")
        assert (panel.layoutDirection(), panel._where.layoutDirection()) == (right, left)
        for kind in (QTableView, QAbstractSpinBox, CodeView):
            found = desk.window.findChildren(kind)
            assert found and {one.layoutDirection() for one in found} == {left}, kind
    finally:
        qapp.setLayoutDirection(left)
