"""Installs what an engine lacks on a host, into an environment of its own there."""

import json
import subprocess
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from ace_studio.jobs.hosts.environment import MARK
from ace_studio.jobs.hosts.ssh import connection_problem, start_python
from ace_studio.records.errors import AceError, ErrorCode, Problem
from ace_studio.records.system_faults import system_problem

ENVIRONMENT_FILE = Path(__file__).with_name("environment.py")
_TAIL_LINES = 200


def install_there(
    host: str,
    python: str,
    requirements: Sequence[str],
    say: Callable[[str], None],
    *,
    started: Callable[[subprocess.Popen[str]], object] = lambda _process: None,
) -> str:
    """Install packages into the environment of ACE Studio there; returns the path of its Python.

    Args:
        host: ``user@name``, or a name of the ssh configuration.
        python: The interpreter there that the environment is made of, and whose packages it sees.
        requirements: What to install, as pip has it.
        say: Takes the lines that pip prints.
        started: Gets the process of ssh. When it is ended, pip there ends too; what it installed stays.

    Raises: AceError if the host cannot be reached, or pip could not install.
    """
    program = ENVIRONMENT_FILE.read_text(encoding="utf-8")
    sent = f"{len(program.encode())}\n{program}{json.dumps({'requirements': list(requirements)})}\n"
    said = deque[str](maxlen=_TAIL_LINES)
    process = start_python(host, python, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace")
    found = ""
    with process:
        assert process.stdin and process.stdout
        started(process)
        with suppress(OSError):  # ssh has ended, and says why
            process.stdin.write(sent)
            process.stdin.flush()  # and it stays open: its end is the end of pip there
        for line in map(str.rstrip, process.stdout):
            if line.startswith(MARK):
                found = str(json.loads(line.removeprefix(MARK)))
                continue
            said.append(line)
            say(line)
    if not found:
        raise AceError(_problem(host, python, process.returncode, "\n".join(said)))
    return found


def _problem(host: str, python: str, exit_code: int, said: str) -> Problem:
    if exit_code in (126, 127, 255):
        return connection_problem(host, python, exit_code, said)
    errors = [line for line in said.splitlines() if line.startswith(("ERROR:", "OSError:"))]
    why = (errors or said.splitlines() or ["pip printed nothing"])[0]
    if (fault := system_problem(OSError(why))) is not None:
        remedy = "Make room there, or set XDG_DATA_HOME and TMPDIR there to folders with room"
        what = f"{fault.what} on {host}"
        return Problem(code=fault.code, what=what, why=why, remedy=remedy, where=host, details=said)
    if "ensurepip" in said:
        remedy = "Install venv there (Debian: apt-get install python3-venv), or name another Python with --python"
    else:
        remedy = "Read what pip printed; it takes its index and its proxy from the settings there"
    what = f"The packages could not be installed on {host}"
    return Problem(code=ErrorCode.NOT_INSTALLED, what=what, why=why, remedy=remedy, where=host, details=said)
