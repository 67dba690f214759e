"""A process that saves and is killed at a random moment leaves each file old or new, and nothing temporary."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from ace_studio.records.recipes.file import read_recipe
from ace_studio.session.kept.history import History
from ace_studio.session.kept.settings import Settings

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX")
WRITER = """
import itertools, os, signal, sys
from pathlib import Path
from ace_studio.records.recipes.file import write_recipe
from ace_studio.records.recipes.recipe import ModelChoice, Recipe
from ace_studio.records.results import Result, ResultStatus
from ace_studio.session.artifacts import copy_artifact
from ace_studio.session.kept.history import History
from ace_studio.session.kept.settings import Settings

folder = Path(sys.argv[1])

def write(number):
    write_recipe(Recipe(model=ModelChoice(source=f"{number}.py")), folder / "a.toml")
    result = Result(status=ResultStatus.OK, fingerprint="f" * 64, environment={"v": number})
    History(folder / "history.sqlite").add(result, recipe_toml="", title=str(number))
    Settings(folder / "s.json").set("log_lines", 1000 + number % 1000)
    (source := folder / "source").mkdir(exist_ok=True)
    for name in ("model.xml", "model.bin"):
        (source / name).write_bytes(b"%09d" % number * 1000)
    copy_artifact(source / "model.xml", folder / "model.xml")

write(0)
for start in sys.stdin:
    # A fork for each kill: importing once is what makes many kills cheap.
    if (child := os.fork()) == 0:
        for number in itertools.count(int(start)):
            write(number)
            os.write(1, b"%d\\n" % number)
    os.write(1, b"child %d\\n" % child)
    os.waitpid(child, 0)
    os.write(1, b"dead\\n")
"""


def _whole(content: bytes) -> bool:
    return len(content) == 9000 and len({content[at : at + 9] for at in range(0, 9000, 9)}) == 1


@pytest.mark.parametrize("kills", [40, pytest.param(200, marks=[pytest.mark.slow, pytest.mark.full])])
def test_files_are_old_or_new_whenever_the_process_is_killed(tmp_path, kills):
    chance = random.Random(13)
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert writer.stdin is not None and writer.stdout is not None
    done = 0
    with writer.stdin as orders, writer.stdout as answers:
        for _ in range(kills):
            print(done + 1, file=orders, flush=True)
            while not (line := answers.readline()).startswith("child"):
                done = max(done, int(line))
            time.sleep(chance.uniform(0, 0.2))
            os.kill(int(line.split()[1]), signal.SIGKILL)
            while (line := answers.readline()) != "dead\n":
                done = max(done, int(line))
            kept = int(read_recipe(tmp_path / "a.toml").model.source.removesuffix(".py"))
            assert kept in (done, done + 1)
            runs = [int(run.title) for run in History(tmp_path / "history.sqlite").list(limit=1)]
            assert runs[0] in (done, done + 1)
            stored = Settings(tmp_path / "s.json").get("log_lines")
            assert stored in (1000 + done % 1000, 1000 + (done + 1) % 1000)
            assert all(_whole((tmp_path / name).read_bytes()) for name in ("model.xml", "model.bin"))
    writer.wait()
    assert done >= kills // 10
    subprocess.run([sys.executable, "-c", WRITER, str(tmp_path)], check=True, stdin=subprocess.DEVNULL)
    assert [one.name for one in tmp_path.rglob("*") if one.name.startswith(".")] == []
