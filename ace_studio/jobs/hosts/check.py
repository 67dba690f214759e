"""Asks a Python, on a host or here, what it has for an engine."""

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ace_studio.jobs.autopsy import cannot_start
from ace_studio.jobs.boot import OLDEST_PYTHON
from ace_studio.jobs.hosts.probe import MARK
from ace_studio.jobs.hosts.ssh import (
    CONNECT_TIMEOUT_S,
    NOT_HERE,
    connection_problem,
    no_ssh,
    python_words,
    ssh_command,
    ssh_environment,
)
from ace_studio.jobs.launch import LaunchOptions, clean_environment, default_interpreter
from ace_studio.records.errors import AceError, ErrorCode, Problem
from ace_studio.records.hosts import NEEDED, HostReport
from ace_studio.records.system_faults import system_problem
from ace_studio.records.targets import TARGET_ROWS

PROBE_FILE = Path(__file__).with_name("probe.py")
LIMIT_S = CONNECT_TIMEOUT_S + 45.0
LEAST_FREE_BYTES = 200_000_000
"""Less leaves no room for a model and its artifacts."""


def check_host(
    host: str,
    python: str = "",
    *,
    limit_s: float = LIMIT_S,
    started: Callable[[subprocess.Popen[bytes]], object] = lambda _process: None,
) -> HostReport:
    """What a host has for an engine, and what it lacks.

    Args:
        host: ``user@name``, or a name of the ssh configuration; empty for this machine.
        python: Its interpreter there; empty for ``python3``, and on this machine for that of the engine.
        limit_s: Seconds after which an answer is no longer waited for.
        started: Gets the process that was started, so that it can be ended from another thread.

    Raises: AceError if ssh is missing, the host cannot be reached or refuses, or there is no such Python.
    """
    begin = time.perf_counter()
    if host:
        command, environment = ssh_command(host, f"{python_words(python)} -"), ssh_environment()
    else:
        python = python_here(python) or default_interpreter()
        command = [python, "-"]
        environment = clean_environment(LaunchOptions(interpreter=python), os.environ)
    pipe, place = subprocess.PIPE, host or python
    try:
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment)
    except OSError as error:
        raise AceError(no_ssh(error) if host else cannot_start(python, error)) from error
    with process:
        started(process)
        try:
            out, err = process.communicate(NOT_HERE.encode() + PROBE_FILE.read_bytes(), timeout=limit_s)
        except subprocess.TimeoutExpired as error:
            process.kill()
            raise AceError.of(
                ErrorCode.TIMEOUT,
                f"{place} did not answer within {limit_s:g} s",
                why="the connection stands, or is being made, and nothing came" if host else "it printed nothing",
                remedy=f"Try it by hand: {f'ssh {host} ' if host else ''}{python_words(python)} --version",
                where=place,
            ) from error
    said = out.decode(errors="replace")
    line = next((line for line in said.splitlines() if line.startswith(MARK)), "")
    if not line:
        said = err.decode(errors="replace") or said
        exit_code = process.returncode
        raise AceError(
            connection_problem(host, python, exit_code, said) if host else _no_python(python, exit_code, said)
        )
    return _report(host, python, json.loads(line.removeprefix(MARK)), time.perf_counter() - begin)


def python_here(named: str) -> str:
    """A Python of this machine as its absolute path: ``~`` and ``PATH`` count, links are not followed.

    The Python of an environment is a link, and is another one if it is called by what it points to.
    """
    path = os.path.expanduser(named)  # noqa: PTH111 - a bare name stays one
    return os.path.abspath(path) if os.path.dirname(path) else shutil.which(path) or path  # noqa: PTH100, PTH120


def check_python(named: str) -> str:
    """The absolute path of a Python of this machine in which an engine can run. Raises: AceError if none can."""
    python = python_here(named)
    report = check_host("", python)
    if unfit := tuple(one for one in report.problems if one.code is ErrorCode.NOT_INSTALLED):
        raise AceError(*unfit)
    return python


def _no_python(python: str, exit_code: int, said: str) -> Problem:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return Problem(
        code=ErrorCode.NOT_INSTALLED,
        what=f"{python} does not work as a Python",
        why=f"{lines[-1] if lines else 'it printed nothing'} (exit code {exit_code})",
        remedy="Name the interpreter itself, such as bin/python of an environment",
        where=python,
        details=said,
    )


def _report(host: str, python: str, found: dict[str, Any], seconds: float) -> HostReport:
    refusal, packages = str(found.pop("disk_refusal")), dict(found["packages"])
    missing = tuple(text for name, text in NEEDED.items() if not _fits(packages.get(name, ""), text))
    called = python_words(found["executable"] or python)
    install = f"{called} -m pip install {' '.join(map(repr, missing))}" if missing else ""
    targets = {
        row.name: f"{called} -m {row.install}"
        if row.install.startswith("pip ") and any(name.replace("_", "-") not in packages for name in row.packages)
        else ""
        for row in TARGET_ROWS.values()
        if row.packages
    }
    report = HostReport(
        host=host, python=python, **found, missing=missing, install=install, targets=targets, seconds=seconds
    )
    return replace(report, problems=tuple(_problems(report, refusal)))


def _problems(report: HostReport, refusal: str) -> list[Problem]:
    found, place = [], report.host or "this machine"
    install = f"Give in a terminal: {report.install}; or install an engine pack: ace-studio engine install FILE"
    if report.host:
        install = (
            f"ace-studio engine host install {report.host} makes an environment there (in the window: Install); "
            f"or give there: {report.install}"
        )
    if _numbers(report.version) < OLDEST_PYTHON:
        found.append(
            Problem(
                code=ErrorCode.NOT_INSTALLED,
                what=f"The Python on {place} is too old: {report.version}",
                why=f"an engine needs Python {'.'.join(map(str, OLDEST_PYTHON))} or newer",
                remedy='Name another one: --python, or [engine] python = "..."'
                if report.host
                else "Choose another one",
                where=report.executable,
            )
        )
    elif report.missing:
        found.append(
            Problem(
                code=ErrorCode.NOT_INSTALLED,
                what=f"The Python on {place} lacks what an engine needs",
                why=f"missing or of another version: {', '.join(report.missing)}",
                remedy=install,
                where=report.executable,
            )
        )
    what, why = "", refusal
    if refusal:
        fault, what = system_problem(OSError(refusal)), f"No file can be written on {place}"
        what = f"{what}: {fault.what[0].lower()}{fault.what[1:]}" if fault else what
    elif report.disk_free_bytes < LEAST_FREE_BYTES:
        what = f"The disk of {place} is nearly full"
        why = f"{report.disk_free_bytes / 1e6:.0f} MB are free, and {LEAST_FREE_BYTES / 1e6:.0f} MB are needed"
    if what:
        remedy = "Make room there, or set XDG_CACHE_HOME there to a folder with room"
        where = f"{report.host}:{report.cache}".removeprefix(":")
        found.append(Problem(code=ErrorCode.SYSTEM, what=what, why=why, remedy=remedy, where=where))
    return found


def _fits(version: str, requirement: str) -> bool:
    """Whether a version lies in ``name>=LOW,<HIGH``."""
    low, high = re.findall(r"[\d.]+", requirement[re.search(r"[<>]", requirement).start() :])  # type: ignore[union-attr]
    return bool(version) and _numbers(low) <= _numbers(version) < _numbers(high)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.match(r"[\d.]*\d", version)[0].split("."))  # type: ignore[index]
