"""The pictures in the README are made by a script from the real window; the script still works."""

import os
import struct
import subprocess
import sys

import pytest


def png_size(content: bytes) -> tuple[int, int]:
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", content[16:24])
    return width, height


PICTURES = ("screenshot.png", "screenshot-sensitivity.png")


@pytest.mark.parametrize("name", PICTURES)
def test_the_readme_shows_a_picture_of_the_size_that_the_script_makes(root, name):
    assert f"(resources/{name})" in (root / "README.md").read_text(encoding="utf-8")
    content = (root / "resources" / name).read_bytes()
    assert png_size(content) == (1600, 1000)
    assert len(content) < 300_000


@pytest.mark.full  # it is looked at whenever the pictures are made anew
@pytest.mark.slow
@pytest.mark.heavy
def test_the_script_runs_the_example_in_the_real_window_and_saves_what_it_shows(root, tmp_path):
    command = [
        sys.executable,
        str(root / "packaging" / "screenshot.py"),
        "--out",
        str(tmp_path),
        "--help-out",
        str(tmp_path),
    ]
    # Without a compiler on the path the two targets are left out that take half a minute to build.
    environment = os.environ | {"PATH": "", "CXX": ""}
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    for name in PICTURES:
        content = (tmp_path / name).read_bytes()
        assert png_size(content) == (1600, 1000)
        assert len(content) > 30_000, f"{name} is nearly empty"
    for picture in (root / "resources" / "help").glob("*.png"):
        assert png_size((tmp_path / picture.name).read_bytes()) == png_size(picture.read_bytes())
