"""``completion`` prints a script that works in a real shell."""

import shutil
import subprocess
import sys

import pytest

from ace_studio.cli import run_command

ASK = """
source {script}
COMP_WORDS=(ace-studio {words}); COMP_CWORD={at}; _ace_studio_completion ace-studio; echo "${{COMPREPLY[@]}}"
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not here")
@pytest.mark.parametrize(
    ("words", "at", "found"), [("engine rem", 2, "remove"), ("eng", 1, "engine"), ("run --repe", 2, "--repeat")]
)
def test_bash_completes_commands_and_options(tmp_path, capsys, root, words, at, found):
    assert run_command(["completion", "bash"]) == 0
    script = tmp_path / "script"
    script.write_text(capsys.readouterr().out)
    program = tmp_path / "ace-studio"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ace_studio "$@"\n')
    program.chmod(0o755)
    asked = ["env", f"PATH={tmp_path}:/usr/bin:/bin", f"PYTHONPATH={root}", "bash", "-c"]
    asked.append(ASK.format(script=script, words=words, at=at))
    assert subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip() == found


def test_a_shell_that_is_not_known_is_named(capsys):
    assert run_command(["completion", "tcsh"]) == 2
    assert "tcsh" in capsys.readouterr().err
