"""About: what this is, its version, and what the engine runs on."""

import json
import re
import sys
import tomllib

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPushButton

from ace_studio.gui.dialogs.about import (
    CONTENTS,
    NOT_SHIPPED,
    OWN,
    AboutDialog,
    Licence,
    about_text,
    contents_folder,
    licences,
)


@pytest.fixture(scope="module")
def found() -> tuple[Licence, ...]:
    return licences()


def test_about_names_the_versions_of_window_and_engine(desk):
    assert "has not reported" in about_text(None)
    desk.traced()
    desk.session.jobs.request_environment()
    assert f"torch {desk.document.environment.versions['torch']}" in about_text(desk.document.environment)


def test_versions_are_copied_for_a_report_and_licences_are_read_when_they_are_looked_at(desk, monkeypatch):
    read = []
    monkeypatch.setattr(Licence, "text", property(lambda self: read.append(self.package.name) or "its words"))
    desk.do("about")
    (dialog,) = desk.window.findChildren(AboutDialog)
    copy = next(one for one in dialog.findChildren(QPushButton) if one.text() == "Copy versions")
    QTest.mouseClick(copy, Qt.MouseButton.LeftButton)
    assert QApplication.clipboard().text().startswith("ACE Studio ")
    assert dialog.licences.count() == 0
    bar = dialog.tabs.tabBar()
    QTest.mouseClick(bar, Qt.MouseButton.LeftButton, pos=bar.tabRect(1).center())
    assert dialog.licences.count() > 20 and dialog.text.toPlainText() == "its words"
    dialog.licences.setCurrentRow(dialog.licences.count() - 1)
    assert "CC BY 4.0" in dialog.text.toPlainText()


KNOWN = r"MIT|BSD|Apache|LGPL|MPL|ISC|PSF|HPND|Zlib"


def test_every_package_that_is_needed_at_run_time_has_a_licence_that_allows_it(found):
    assert found[0].package.name == OWN and "Apache" in found[0].name
    assert [each.title for each in found if not re.search(KNOWN, each.name)] == []
    only_gpl = [each.title for each in found if "GPL" in each.name and not re.search("LGPL", each.name)]
    assert only_gpl == []


def test_every_package_that_the_project_names_is_listed_if_it_is_installed(root, found):
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    named = [*project["dependencies"], *(line for name in extras if name not in NOT_SHIPPED for line in extras[name])]
    apart = {OWN, "executorch", "litert-torch", "coremltools"}  # each asks for other versions than the rest
    names = {re.match(r"[\w.-]+", line)[0].casefold() for line in named} - apart
    listed = {re.sub(r"[-_.]+", "-", each.package.name.casefold()) for each in found}
    assert names - listed == set()


def test_a_text_is_shown_for_every_package_or_where_to_find_it(found):
    assert [each.title for each in found if len(each.text) < 60] == []


def test_an_installed_program_shows_what_its_list_of_contents_names(desk, tmp_path, monkeypatch):
    components = [
        {"name": "zlib1g", "version": "1.2", "licenses": [{"expression": "Zlib"}]},
        {"name": OWN, "version": "0.2.0", "licenses": [{"license": {"id": "Apache-2.0"}}]},
        {"name": "Qt", "version": "6", "licenses": [{"license": {"name": "License :: OSI Approved :: LGPL"}}]},
    ]
    (tmp_path / "Resources" / "licences").mkdir(parents=True)
    (tmp_path / "Resources" / CONTENTS).write_text(json.dumps({"components": components}))
    (tmp_path / "Resources" / "licences" / "Qt.txt").write_text("the text of Qt")
    for program in (tmp_path / "Resources" / "ace-studio", tmp_path / "MacOS" / "ace-studio"):
        monkeypatch.setattr(sys, "executable", str(program))
        assert contents_folder() == tmp_path / "Resources"
    dialog = AboutDialog(desk.session)
    dialog.tabs.setCurrentIndex(1)
    rows = [dialog.licences.item(at).text() for at in range(dialog.licences.count())]
    assert rows[:3] == ["ace-studio 0.2.0: Apache-2.0", "Qt 6: LGPL", "zlib1g 1.2: Zlib"]
    dialog.licences.setCurrentRow(1)
    assert dialog.text.toPlainText() == "the text of Qt"
    dialog.licences.setCurrentRow(2)
    assert "no text" in dialog.text.toPlainText()
