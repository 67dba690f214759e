"""What a Linux desktop finds after an installation."""

from __future__ import annotations

import configparser
import gzip
import importlib
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

MIME = "{http://www.freedesktop.org/standards/shared-mime-info}"


@pytest.fixture(scope="module")
def stage(root):
    folder = str(root / "packaging" / "linux")
    sys.path.insert(0, folder)
    yield importlib.import_module("stage")
    sys.path.remove(folder)


@pytest.fixture
def share(stage, tmp_path):
    stage.stage(tmp_path / "first")
    return tmp_path / "first" / "usr" / "share"


def test_the_menu_entry_opens_the_types_that_are_declared(share):
    entry = configparser.ConfigParser(interpolation=None)
    entry.optionxform = str
    entry.read(share / "applications" / "ace-studio.desktop")
    values = entry["Desktop Entry"]
    assert values["Exec"] == "ace-studio open %F"
    declared = {row.get("type") for row in ET.parse(share / "mime/packages/ace-studio.xml").iter(f"{MIME}mime-type")}
    assert declared and declared < set(values["MimeType"].split(";"))
    assert (share / "icons/hicolor/scalable/apps" / f"{values['Icon']}.svg").exists()


def test_the_window_names_its_menu_entry(root, share):
    source = (root / "ace_studio" / "gui" / "shell" / "start.py").read_text()
    name = source.partition('setDesktopFileName("')[2].partition('"')[0]
    assert (share / "applications" / f"{name}.desktop").exists()


def test_the_manual_page_names_every_command(share):
    from typer.main import get_command

    from ace_studio.cli import app

    page = gzip.decompress((share / "man/man1/ace-studio.1.gz").read_bytes()).decode()
    assert page.startswith(".TH ACE-STUDIO 1")
    missing = [name for name in get_command(app).commands if f"ace\\-studio {name}" not in page]
    assert not missing
    assert "](" not in page and "`" not in page


def test_everything_has_the_same_bytes_twice(stage, share, tmp_path):
    stage.stage(tmp_path / "second")
    for path in share.rglob("*"):
        if path.is_file():
            again = tmp_path / "second" / path.relative_to(tmp_path / "first")
            assert again.read_bytes() == path.read_bytes(), path.name


@pytest.mark.parametrize(
    "words",
    [
        ["appstreamcli", "validate", "--no-net", "metainfo/ace_studio.desktop.AceStudio.metainfo.xml"],
        ["desktop-file-validate", "applications/ace-studio.desktop"],
    ],
)
def test_the_tools_of_the_desktop_accept_it(share, words):
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not here")
    done = subprocess.run(words, cwd=share, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
