"""Processes of our own are not misled by what lies beside a user's model."""

import subprocess
from pathlib import Path

import pytest

from ace_studio.engine.fresh import fresh_python


@pytest.mark.parametrize("name", ["random", "profile", "types"])
def test_a_file_of_the_user_is_not_taken_for_a_module_of_python(tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}.py").write_text("raise RuntimeError('shadowed')", encoding="utf-8")
    (tmp_path / "order.json").write_text("{}", encoding="utf-8")
    command = fresh_python("json.tool", "main", str(tmp_path / "order.json"))
    code = command[3].replace("from json.tool import main", f"import {name}; main = lambda path: 7")
    ended = subprocess.run(
        [*command[:3], code, *command[4:]], cwd=tmp_path, check=False, capture_output=True, text=True
    )
    assert ended.returncode == 7, ended.stderr


def test_it_calls_the_function_with_the_arguments(tmp_path: Path) -> None:
    ended = subprocess.run(
        fresh_python("ace_studio.engine.verify_child", "verify", str(tmp_path)),
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
    )
    assert ended.returncode != 0
    assert str(tmp_path / "order.json") in ended.stderr
