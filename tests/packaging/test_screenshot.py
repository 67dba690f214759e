"""The picture in the README is made by a script from the real window; the script still works."""

import os
import struct
import subprocess
import sys

import pytest


def png_size(content: bytes) -> tuple[int, int]:
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", content[16:24])
    return width, height


def test_the_readme_shows_a_picture_of_the_size_that_the_script_makes(root):
    assert "(resources/screenshot.png)" in (root / "README.md").read_text(encoding="utf-8")
    assert png_size((root / "resources" / "screenshot.png").read_bytes()) == (1600, 1000)


@pytest.mark.slow
@pytest.mark.heavy
def test_the_script_runs_the_example_in_the_real_window_and_saves_what_it_shows(root, tmp_path):
    out = tmp_path / "shot.png"
    command = [
        sys.executable,
        str(root / "packaging" / "screenshot.py"),
        "--out",
        str(out),
        "--help-out",
        str(tmp_path),
    ]
    # Without a compiler on the path the two targets are left out that take half a minute to build.
    environment = os.environ | {"PATH": "", "CXX": ""}
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert png_size(out.read_bytes()) == (1600, 1000)
    assert out.stat().st_size > 30_000, "the picture is nearly empty"
    for picture in (root / "resources" / "help").glob("*.png"):
        assert png_size((tmp_path / picture.name).read_bytes()) == png_size(picture.read_bytes())
