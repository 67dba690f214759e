"""Commands that are called in a stranger's folder import nothing from there, whatever its files are called."""

import os
import subprocess
import sys

import pytest

from ace_studio.jobs.hosts.ssh import FIRST_WORDS
from tests.engine.load.onnx_samples import write_classifier

_PACKAGES = ("msgspec", "numpy", "torch", "onnx", "onnxruntime", "distributed", "dask", "psutil", "ace_studio")


@pytest.fixture
def folder(tmp_path):
    """A folder with a model, and with a module of every name that a Python may import; each leaves a mark."""
    made = tmp_path / "gift"
    made.mkdir()
    write_classifier(made / "m.onnx")
    (made / "recipe.toml").write_text(
        'format = 1\n[model]\nsource = "m.onnx"\n[plan]\ndefault = "fp32"\n'
        '[targets]\nnames = ["onnxruntime"]\n[measure]\nrounds = 5\n'
    )
    for name in (*sys.stdlib_module_names, *_PACKAGES):
        (made / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write({name!r} + '\\n')\n")
    return made


def call(folder, *words):
    environment = {**os.environ, "HOME": str(folder.parent / "home")}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert not (folder.parent / "ran").exists(), (folder.parent / "ran").read_text()
    return done


def ace(folder, *words):
    done = call(folder, sys.executable, "-P", "-m", "ace_studio", *words)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("words", [["inspect", "m.onnx"], ["doctor"], ["devices", "check", "here"]])
def test_what_asks_a_python_imports_nothing_of_the_folder(folder, words):
    ace(folder, *words)


@pytest.mark.slow
def test_a_run_its_measurement_and_a_sweep_import_nothing_of_the_folder(folder):
    ace(folder, "run", "recipe.toml", "--out", "out")
    ace(folder, "measure", "out", "--device", "here")
    ace(folder, "sweep", "recipe.toml", "--out", "swept")


def test_a_python_that_knows_no_safe_path_takes_its_program_without_the_folder(folder):
    program = b"import json, hashlib"
    done = subprocess.run(
        [sys.executable, "-c", FIRST_WORDS], input=b"%d\n%s" % (len(program), program), cwd=folder, check=False
    )
    assert done.returncode == 0 and not (folder.parent / "ran").exists()
