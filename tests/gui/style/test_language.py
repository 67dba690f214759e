"""The language of the window: packs of translations, and a window in German."""

import json
import os
import re
import subprocess
import sys

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QCoreApplication, QLocale, Qt, QTranslator
from PySide6.QtWidgets import QAbstractSpinBox, QTableView

from ace_studio.gui.shell.status_line import activity_text
from ace_studio.gui.style import language
from ace_studio.gui.style.language import Translator, install_language, number, numbers, told, tr
from ace_studio.gui.widgets.code_view import CodeView
from ace_studio.gui.widgets.fields import DecimalBox
from ace_studio.gui.words.formatting import bytes_text, ms_text, percent_text, plural
from ace_studio.gui.words.problems import problem_text, told_problem
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.messages import Phase
from ace_studio.session.document import Activity, EngineState
from tests.gui import window_texts

PACKS = sorted(path.stem for path in window_texts.LANGUAGES.glob("*.json"))

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
    texts, translated = window_texts.texts_of_window(), set(window_texts.pack(language))
    assert not translated - texts
    assert len(translated) >= 0.9 * len(texts)


@pytest.mark.parametrize("language", PACKS)
def test_a_pack_tells_nearly_every_problem_that_is_made_outside_the_engine(language):
    sentences, translated = window_texts.sentences_of_problems(), set(window_texts.pack(language, "sentences"))
    assert len(sentences) > 60
    assert not translated - sentences - window_texts.sentences_of_engine()
    assert len(translated & sentences) >= 0.9 * len(sentences)


@pytest.mark.parametrize("language", PACKS)
def test_a_pack_tells_what_the_engine_does_and_what_a_file_would_run(language):
    sentences, translated = window_texts.sentences_of_engine(), set(window_texts.pack(language, "sentences"))
    assert len(sentences) > 50
    assert len(translated & sentences) >= 0.9 * len(sentences)


@pytest.mark.parametrize("part", ["texts", "sentences"])
@pytest.mark.parametrize("language", PACKS)
def test_a_translation_has_the_placeholders_of_its_text(language, part):
    translated = window_texts.pack(language, part)
    assert [text for text, other in translated.items() if placeholders(text) != placeholders(other)] == []
    assert all(translated.values())


def test_no_text_is_shown_without_a_look_up_in_the_language_pack():
    assert window_texts.bare_texts() == []


@pytest.fixture
def german(qapp):
    before, translators = QLocale(), set(qapp.findChildren(QTranslator))
    install_language("Deutsch", qapp)
    yield qapp
    QLocale.setDefault(before)
    for one in set(qapp.findChildren(QTranslator)) - translators:
        qapp.removeTranslator(one)
        one.setParent(None)


def test_numbers_are_written_with_the_separators_of_the_language(german):
    assert number(1234567.891, ",.2f") == "1.234.567,89"
    assert numbers((0.5, 1.25), "g") == "0,5; 1,25"
    assert tr("{total:,} found", total=1234) == "1.234 gefunden"
    assert ms_text(2.345) == "2,345 ms" and bytes_text(1_230_000) == "1,23 MB" and percent_text(0.0123) == "1,23 %"
    assert plural(12_345, "op") == "12.345 Ops"


def test_a_field_for_numbers_takes_point_and_comma_in_every_language(german, qtbot):
    QLocale.setDefault(QLocale.c())
    english = DecimalBox(0.0, 2000.0)
    QLocale.setDefault(QLocale("de"))
    for box, shown in ((english, "1234.50"), (DecimalBox(0.0, 2000.0), "1234,50")):
        qtbot.addWidget(box)
        for typed in ("1.5", "1,5"):
            box.lineEdit().selectAll()
            qtbot.keyClicks(box.lineEdit(), typed)
            qtbot.keyClick(box.lineEdit(), Qt.Key.Key_Return)
            assert box.value() == 1.5
        box.setValue(1234.5)
        assert box.text() == shown


def test_a_problem_made_elsewhere_is_told_in_the_language_with_its_values(german):
    problem = Problem(
        code=ErrorCode.NOT_FOUND, what="There is no run 17 in the history", why="a word of torch", where="model.py:3"
    )
    assert told_problem(problem).what == "Es gibt keinen Lauf 17 im Verlauf"
    assert problem_text(problem).splitlines()[1:] == ["  warum: a word of torch", "  wo: model.py:3"]


def test_what_the_engine_does_is_told_in_the_language_and_other_words_stay(german):
    busy = Activity(state=EngineState.BUSY, phase=Phase.MEASURE, detail="round 3 of 30")
    assert activity_text(busy).endswith(": Runde 3 von 30")
    assert activity_text(replace(busy, detail="linear_1 alone")).endswith(": linear_1 alone")


def test_every_sentence_of_the_pack_is_found_by_itself_and_not_by_a_wider_one(german):
    for sentence, other in window_texts.pack("Deutsch", "sentences").items():
        values = [f"v{at}" for at in range(sentence.count("{"))]
        assert told(sentence.format(*values)) == other.format(*values)


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
    shown, german = json.loads(done.stdout.splitlines()[-1]), window_texts.pack("Deutsch")
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
