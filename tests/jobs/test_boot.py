"""The first file of a worker runs in any interpreter, by its path."""

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from ace_studio.jobs import boot

BOOT = Path(boot.__file__)


def boot_with(environment: dict[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, BOOT]
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)


def test_a_worker_that_cannot_connect_prints_why_and_ends_with_1(tmp_path: Path) -> None:
    environment = {**os.environ, boot.CONFIG_VARIABLE: json.dumps({"mark": "m"})}
    done = boot_with(environment, tmp_path)
    assert done.returncode == 1
    assert "KeyError: 'port'" in done.stderr


@pytest.mark.parametrize(("name", "is_explained"), [("torch", True), ("torch._C", False), ("ace_studio.gone", False)])
def test_a_missing_package_is_one_line_and_a_broken_one_is_shown_in_full(monkeypatch, capsys, name, is_explained):
    def fail() -> int:
        raise ModuleNotFoundError(f"No module named '{name}'", name=name)

    codes = []
    monkeypatch.setattr(boot, "become_worker", fail)
    monkeypatch.setattr(boot.os, "_exit", codes.append)
    boot.run_and_exit()
    said = capsys.readouterr().err
    assert codes == [1]
    assert ("Traceback" not in said) == is_explained
    assert said.endswith(f"ModuleNotFoundError: No module named '{name}'\n")


def test_an_old_python_is_refused_in_words(monkeypatch, capsys) -> None:
    monkeypatch.setattr(boot, "OLDEST_PYTHON", (99, 0))
    assert boot.become_worker() == 3
    assert "needs Python" in capsys.readouterr().err


def test_the_file_imports_nothing_of_the_package_when_it_is_loaded(monkeypatch) -> None:
    monkeypatch.setattr(sys, "modules", {name: one for name, one in sys.modules.items() if "ace_studio" not in name})
    runpy.run_path(str(BOOT), run_name="boot")
    assert not [name for name in sys.modules if name.startswith("ace_studio")]


def test_only_our_own_folder_is_taken_off_the_path(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "path", [str(BOOT.parent), str(tmp_path), ""])
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    monkeypatch.chdir(tmp_path)
    boot._make_importable()
    assert sys.path == [str(tmp_path), ""]
    assert sys.modules["ace_studio"].__path__ == [str(BOOT.parent.parent)]


@pytest.mark.parametrize("config", ["", "{}"])
def test_without_a_configuration_nothing_is_started(tmp_path: Path, config: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != boot.CONFIG_VARIABLE}
    if config:
        environment[boot.CONFIG_VARIABLE] = config
    done = boot_with(environment, tmp_path)
    assert done.returncode == 1
