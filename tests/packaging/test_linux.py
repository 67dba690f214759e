"""What a Linux desktop finds after an installation."""

import configparser
import gzip
import importlib
import os
import shutil
import struct
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from ace_studio.records.recipes.recipe import RECIPE_SUFFIX

MIME = "{http://www.freedesktop.org/standards/shared-mime-info}"


@pytest.fixture(scope="module")
def stage(root):
    folder = str(root / "packaging" / "linux")
    sys.path.insert(0, folder)
    yield importlib.import_module("stage")
    sys.path.remove(folder)


@pytest.fixture(scope="module")
def share(stage, tmp_path_factory):
    prefix = tmp_path_factory.mktemp("first")
    stage.stage(prefix)
    return prefix / "usr" / "share"


def test_the_menu_entry_opens_the_types_that_are_declared(share):
    entry = configparser.ConfigParser(interpolation=None)
    entry.optionxform = str
    entry.read(share / "applications" / "ace-studio.desktop")
    values = entry["Desktop Entry"]
    assert values["Exec"] == "ace-studio open %F"
    declared = {row.get("type") for row in ET.parse(share / "mime/packages/ace-studio.xml").iter(f"{MIME}mime-type")}
    # No other: the program would be the default for it wherever editors claim text alone.
    assert declared and {*declared, ""} == set(values["MimeType"].split(";"))
    assert (share / "icons/hicolor/scalable/apps" / f"{values['Icon']}.svg").exists()


def test_the_window_names_its_menu_entry(root, share):
    source = (root / "ace_studio" / "gui" / "shell" / "start.py").read_text()
    name = source.partition('setDesktopFileName("')[2].partition('"')[0]
    assert (share / "applications" / f"{name}.desktop").exists()


def test_the_icon_is_there_in_every_size(share):
    sizes = set()
    for path in share.glob("icons/hicolor/*/apps/ace-studio.png"):
        width, height = struct.unpack(">II", path.read_bytes()[16:24])
        assert path.parts[-3] == f"{width}x{height}"
        sizes.add(width)
    assert {16, 32, 48, 64, 128, 256, 512} <= sizes


@pytest.mark.skipif(not (shutil.which("update-mime-database") and shutil.which("gio")), reason="no MIME tools are here")
@pytest.mark.skipif(not Path("/usr/share/mime/mime.cache").exists(), reason="this system has no types of its own")
def test_the_desktop_tells_recipes_and_models_from_other_files(share, tmp_path):
    data = tmp_path / "data"
    shutil.copytree(share / "mime", data / "mime")
    subprocess.run(["update-mime-database", data / "mime"], check=True, capture_output=True)
    expected = {
        "recipe.toml": "application/x-ace-studio-recipe",
        f"mine{RECIPE_SUFFIX}": "application/x-ace-studio-recipe",
        "other.toml": "application/toml",
        "net.onnx": "application/x-onnx",
        "net.safetensors": "application/x-safetensors",
        "net.pt2": "application/x-pytorch-program",
    }
    for name, kind in expected.items():
        (tmp_path / name).write_bytes(b"format = 1\n")
        said = subprocess.run(
            ["gio", "info", "-a", "standard::fast-content-type", tmp_path / name],
            env={**os.environ, "XDG_DATA_HOME": str(data), "XDG_DATA_DIRS": "/usr/share"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert said.strip().endswith(f"fast-content-type: {kind}"), name


def test_an_unpacked_program_enters_the_menu_and_leaves_it(root, share, tmp_path):
    program, home = tmp_path / "a folder", tmp_path / "home"
    shutil.copytree(share, program / "share")
    shutil.copy(root / "packaging" / "linux" / "desktop-entry", program)
    (home / "applications").mkdir(parents=True)
    (home / "applications" / "other.desktop").write_text("")

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_DATA_HOME": str(home)}
        command = [program / "desktop-entry", *words]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert call("install").returncode == 0
    entry = (home / "applications" / "ace-studio.desktop").read_text()
    assert f'\nExec="{program}/ace-studio" open %F\n' in entry
    assert (home / "icons/hicolor/32x32/apps/ace-studio.png").exists()
    assert call("remove").returncode == 0
    left = [path.name for pattern in ("*ace-studio*", "*AceStudio*") for path in home.rglob(pattern)]
    assert left == [] and (home / "applications" / "other.desktop").exists()
    told = call()
    assert told.returncode == 2 and "desktop-entry install" in told.stderr


def test_the_manual_page_names_every_command(share):
    from typer.main import get_command

    from ace_studio.cli.app import app

    page = gzip.decompress((share / "man/man1/ace-studio.1.gz").read_bytes()).decode()
    assert page.startswith(".TH ACE-STUDIO 1")
    missing = [name for name in get_command(app).commands if f"ace\\-studio {name}" not in page]
    assert not missing
    assert "](" not in page and "`" not in page


def test_everything_has_the_same_bytes_twice(stage, share, tmp_path):
    stage.stage(tmp_path / "second")
    for path in share.rglob("*"):
        if path.is_file():
            again = tmp_path / "second" / "usr" / "share" / path.relative_to(share)
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
