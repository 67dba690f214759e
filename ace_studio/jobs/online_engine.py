"""Makes an engine pack from the network: an environment of a Python of this machine, filled by that Python's pip.

The second choice, where no pack is at hand. pip takes its index, mirror, proxy and certificates from its own settings
and variables. The Python itself stays as it is, and the user's own packages (``~/.local``) are not seen.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import ace_studio
from ace_studio.jobs.engine_packs import Pack, PackFile, keep, platform_tag, write_pack_file
from ace_studio.jobs.launch import LaunchOptions, clean_environment
from ace_studio.jobs.processes import kill_group
from ace_studio.records.errors import AceError, ErrorCode, explained
from ace_studio.records.hosts import NEEDED
from ace_studio.records.sweeps import NEEDED_FOR_SWEEPS
from ace_studio.records.system_faults import missing_room, system_problem
from ace_studio.records.targets import TARGET_ROWS

TARGETS = ("onnxruntime", "openvino")
"""Targets that are fetched beside what every engine has: those that come as wheels and need no compiler."""
EXAMPLE = ("pillow>=10,<14", "scikit-learn>=1.4,<2")
"""For folders of pictures, and for the shipped example."""
ROOM_BYTES = 4_000_000_000
"""Of the CPU build. Where the index has torch for GPUs only, as PyPI on Linux, it is more; pip says if that fails."""
PYTHONS = ("python3.13", "python3.12", "python3.11", "python3", "python")
CAN_HOST = "import ensurepip, ssl, sys, venv; sys.exit(not (3, 11) <= sys.version_info < (3, 15))"
LIST = "import importlib.metadata as m, json; print(json.dumps({d.name: d.version for d in m.distributions()}))"
SHOWN = re.compile(r"(Collecting|Downloading|Installing collected packages)\b")
"""Lines of pip that tell a person how far it is."""
FROM_A_FILE = "install an engine pack from a file, which needs no network"
_INSIDE = "Scripts/python.exe" if os.name == "nt" else "bin/python"
_POLL_S = 0.2
_TAIL_LINES = 200


def requirements() -> tuple[str, ...]:
    """What is installed, as pip has it."""
    of_targets = (shlex.split(TARGET_ROWS[name].install.removeprefix("pip install ")) for name in TARGETS)
    targets = (one for words in of_targets for one in words)
    return tuple(dict.fromkeys((*NEEDED.values(), *targets, *NEEDED_FOR_SWEEPS, *EXAMPLE)))


def python_for_it() -> str:
    """The first Python of this machine that can make an environment; empty if there is none."""
    return next((path for name in PYTHONS if (path := shutil.which(name)) and _output(path, CAN_HOST) is not None), "")


def make_online(
    python: str,
    say: Callable[[str], object],
    is_cancelled: Callable[[], bool] = bool,
    *,
    wanted: tuple[str, ...] | None = None,
) -> Pack:
    """Make the pack ``ace-engine-VERSION-PLATFORM-online``, in place of one that is there.

    Args:
        python: The interpreter that the environment is made of; empty looks for one.
        say: Takes what is being done, a line each.
        is_cancelled: Asked all the time; then nothing is left.
        wanted: Requirements in place of `requirements`.

    Raises: AceError. NOT_INSTALLED if there is no such Python or pip could not install, CANCELLED, SYSTEM if the disk
    is full, USAGE if the pack that is there runs.
    """
    if not (chosen := python or python_for_it()):
        raise AceError.of(
            ErrorCode.NOT_INSTALLED,
            "No Python was found that an engine could be made of",
            why="it has to be 3.11 to 3.14, with venv and ensurepip",
            remedy="Install one (Debian: apt-get install python3-venv), name one, or install a pack from a file",
        )
    name = f"ace-engine-{ace_studio.__version__}-{platform_tag()}-online"
    lines = requirements() if wanted is None else wanted
    fill = partial(_fill, python=chosen, lines=lines, say=say, is_cancelled=is_cancelled)
    with explained(ErrorCode.NOT_INSTALLED, "The engine could not be made", where=chosen, remedy=FROM_A_FILE):
        return keep(name, fill, is_cancelled)


def _fill(
    folder: Path, *, python: str, lines: tuple[str, ...], say: Callable[[str], object], is_cancelled: Callable[[], bool]
) -> None:
    if why := missing_room(folder.parent, ROOM_BYTES if lines else 0):
        what, remedy = "There is not enough room for the engine", "Make room there, and try again"
        raise AceError.of(ErrorCode.SYSTEM, what, why=why, remedy=remedy, where=str(folder.parent))
    say(f"Making an environment of {python}")
    _run([python, "-I", "-m", "venv", str(folder)], say, is_cancelled)
    own = str(folder / _INSIDE)
    pip = [own, "-I", "-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--progress-bar", "off"]
    if lines:
        _run([*pip, *lines], say, is_cancelled)
    packages = dict(json.loads(_output(own, LIST) or "{}"))
    files = [one.stat().st_size for one in folder.rglob("*") if one.is_file()]
    _, _, version, system, machine, kind = folder.name.split("-")
    said = PackFile(
        format=1, name=folder.name, version=version, platform=f"{system}-{machine}", kind=kind, python=_INSIDE,
        packages=packages, files=len(files), bytes=sum(files),
    )  # fmt: skip
    write_pack_file(folder, said)


def _run(command: list[str], say: Callable[[str], object], is_cancelled: Callable[[], bool]) -> None:
    """Run a command to its end, or end it and all that it started. Raises: AceError."""
    tail, over = deque[str](maxlen=_TAIL_LINES), threading.Event()
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=_environment(command[0]),
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
    )

    def end() -> None:
        kill_group(process.pid)
        with suppress(OSError):
            process.kill()

    def watch() -> None:
        while not over.wait(_POLL_S):
            if is_cancelled():
                end()

    threading.Thread(target=watch, name="ace-pip", daemon=True).start()
    with process:
        try:
            for line in _lines(process):
                tail.append(line)
                if SHOWN.match(line):
                    say(line[:200])
        except BaseException:  # Ctrl-C, or what `say` raises; pip has a session of its own and hears nothing of it
            end()
            raise
        finally:
            over.set()
    if is_cancelled():
        raise AceError.of(ErrorCode.CANCELLED, "The installation was cancelled", why="nothing of it was kept")
    if process.returncode:
        raise _failure(list(tail))


def _lines(process: subprocess.Popen[str]) -> Iterator[str]:
    assert process.stdout is not None
    return map(str.rstrip, process.stdout)


def _failure(tail: list[str]) -> AceError:
    errors = [line for line in tail if line.startswith(("ERROR:", "OSError:", "Error:"))]
    why = (errors or [line for line in tail if line] or ["it printed nothing"])[-1].removeprefix("ERROR: ")
    details = "\n".join(tail)
    if (fault := system_problem(OSError(why))) is not None:
        return AceError.of(fault.code, fault.what, why=why, remedy=fault.remedy)
    remedy = f"pip takes index, proxy and certificates from its own settings (pip config list); or {FROM_A_FILE}"
    return AceError.of(ErrorCode.NOT_INSTALLED, "The engine could not be made", why=why, remedy=remedy, details=details)


def _environment(python: str) -> dict[str, str]:
    return clean_environment(LaunchOptions(interpreter=python), os.environ)


def _output(python: str, code: str) -> str | None:
    """What a Python prints to a piece of code; None if it cannot run that."""
    with suppress(OSError, subprocess.SubprocessError):
        words = [python, "-I", "-c", code]
        done = subprocess.run(words, env=_environment(python), capture_output=True, text=True, timeout=60, check=True)
        return done.stdout.strip()
    return None
