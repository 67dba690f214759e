"""Facts about a dead worker become a problem with a cause and a remedy."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from ace_studio.jobs.autopsy import Death, cannot_start, cause_of_death
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.hosts import NEEDED


def cause(exit_code: int, *tail: str, was_ready: bool = True, was_oom_kill: bool = False) -> Problem:
    death = Death(
        exit_code=exit_code, was_ready=was_ready, was_oom_kill=was_oom_kill, interpreter="/my/python", tail=tail
    )
    problem = cause_of_death(death)
    assert problem.why and problem.remedy
    return problem


@pytest.mark.parametrize(("was_oom_kill", "code"), [(True, ErrorCode.OUT_OF_MEMORY), (False, ErrorCode.CRASH)])
def test_a_kill_for_lack_of_memory_is_told_from_one_by_hand(was_oom_kill: bool, code: ErrorCode) -> None:
    assert cause(-9, was_oom_kill=was_oom_kill).code is code


@pytest.mark.parametrize(("number", "name"), [(signal.SIGSEGV, "SIGSEGV"), (250, "signal 250")])
def test_a_crash_names_its_signal_and_keeps_the_last_lines(number: int, name: str) -> None:
    problem = cause(-number, "one", "two")
    assert name in problem.what
    assert problem.details == "one\ntwo"


DEEP = """
import faulthandler, io, resource, zipfile, torch
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
faulthandler.enable()
whole, deep = io.BytesIO(), io.BytesIO()
torch.jit.save(torch.jit.script(torch.nn.ReLU()), whole)
with zipfile.ZipFile(whole) as old, zipfile.ZipFile(deep, "w") as new:
    for name in old.namelist():
        if not name.endswith(".debug_pkl"):
            new.writestr(name, old.read(name).replace(b"return ", b"return " + b"(" * 200_000))
deep.seek(0)
torch.jit.load(deep)
"""


def test_a_torchscript_file_that_is_nested_too_deep_for_torch_is_named_for_that() -> None:
    died = subprocess.run([sys.executable, "-c", DEEP], capture_output=True, text=True, check=False)
    assert died.returncode < 0, died.stderr
    problem = cause(died.returncode, *died.stderr.splitlines())
    assert (problem.code, "TorchScript" in problem.what) == (ErrorCode.BAD_FILE, True), problem
    assert "nested too deep" in problem.why and "less nesting" in problem.remedy


def test_an_exit_code_of_0_without_an_answer_is_a_failure() -> None:
    assert "no success" in cause(0).why
    assert "exit code 7" in cause(7).what


def test_a_package_that_is_missing_at_the_start_is_named_with_the_line_that_installs_it() -> None:
    problem = cause(1, "Traceback", "ModuleNotFoundError: No module named 'msgspec.json'", was_ready=False)
    assert problem.code is ErrorCode.NOT_INSTALLED
    assert all(f"'{text}'" in problem.remedy for text in NEEDED.values())  # or the next start would miss the next one
    problem = cause(1, "ModuleNotFoundError: No module named 'my_handlers'", was_ready=False)
    assert "/my/python -m pip install my_handlers;" in problem.remedy


@pytest.mark.parametrize(("tail", "why"), [(("a", "the last one", " "), "the last one"), ((), "It printed nothing")])
def test_another_failure_at_the_start_shows_the_last_line(tail: tuple[str, ...], why: str) -> None:
    assert why in cause(1, *tail, was_ready=False).why


@pytest.mark.parametrize(
    "error", [OSError(30, "Read-only file system", "/tmp"), RuntimeError("can't start new thread")]
)
def test_a_machine_that_refuses_to_start_the_engine_is_named_and_not_the_interpreter(
    error: OSError | RuntimeError,
) -> None:
    problem = cannot_start("/usr/bin/python3", error)
    assert problem.code is ErrorCode.SYSTEM
    assert "the engine process did not start" in problem.what
    assert "ulimit" in problem.remedy or "TMPDIR" in problem.remedy


@pytest.mark.skipif(sys.platform != "linux", reason="no SIGXCPU")
def test_a_limit_on_cpu_time_is_no_crash() -> None:
    problem = cause_of_death(Death(exit_code=-signal.SIGXCPU, was_ready=True, was_oom_kill=False, interpreter="p"))
    assert problem.code is ErrorCode.TIMEOUT
    assert "ulimit -t" in problem.remedy


def test_an_interpreter_that_cannot_be_started_is_named() -> None:
    problem = cannot_start("/my/python", FileNotFoundError(2, "No such file"))
    assert problem.code is ErrorCode.NOT_FOUND
    assert problem.why == "/my/python: No such file"


def test_a_limit_on_open_files_that_is_too_small_for_the_engine_is_named():
    lines = ("Traceback (most recent call last):", "OSError: [Errno 24] Too many open files: at most 24 may be")
    problem = cause_of_death(Death(exit_code=1, was_ready=False, tail=lines, interpreter="/p", was_oom_kill=False))
    assert problem.code is ErrorCode.SYSTEM and "open" in problem.what and "ulimit -n" in problem.remedy
