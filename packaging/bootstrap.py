"""Sets up ``.venv`` and starts a program: ``python bootstrap.py [WORD ...]``, called by ``ace`` and ``ace.cmd``.

Standard library only, because it runs before anything is installed. Every start computes a hash of all that determines
the content of ``.venv``; if the stamp in ``.venv`` has the same hash, the program starts without set-up.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import locked
from parallel_tests import xdist_options
from system_packages import describe_missing, install_system_packages, missing_needs, say

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = ROOT / "packaging" / "constraints.txt"
VENV = ROOT / ".venv"
STAMP = VENV / "ace-stamp.json"
INSTALLING = VENV / "ace-installing"
LOG = VENV / "ace-setup.log"
LOCK = ROOT / ".venv.lock"
IS_WINDOWS = os.name == "nt"
VENV_PYTHON = VENV / ("Scripts/python.exe" if IS_WINDOWS else "bin/python")

STAMP_FORMAT = 1
JOB_FAILED = 6
"""Exit code of a failed set-up; the same as the command line's for a failed job."""
FRESH_INSTALL_BYTES = 3_000_000_000
"""Disk space for a new ``.venv`` with the CPU build of torch (2.4 GB) while pip unpacks it."""


class SetupError(Exception):
    """Set-up cannot go on; ``remedy`` says what to do."""

    def __init__(self, what: str, remedy: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.remedy = remedy


# --- the stamp --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stamp:
    """The inputs that ``.venv`` was set up from."""

    content: str
    """Hash of all that determines the content of ``.venv``."""
    python: str
    """Tag of the interpreter, such as ``cpython-311``."""
    extras: tuple[str, ...]

    @classmethod
    def read(cls) -> Stamp | None:
        """The stamp in ``.venv``; None if there is none or it cannot be read."""
        try:
            found = json.loads(STAMP.read_text(encoding="utf-8"))
            return cls(str(found["content"]), str(found["python"]), tuple(found["extras"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write(self) -> None:
        """Write the stamp atomically."""
        temporary = STAMP.with_suffix(".new")
        temporary.write_text(json.dumps(self.__dict__, indent=2) + "\n", encoding="utf-8")
        temporary.replace(STAMP)


def content_hash(python: str) -> str:
    """Hash of the folder, the interpreter, the pins, and the parts of pyproject that pip reads.

    Settings of linters and pytest are left out, so that changing them needs no installation.
    """
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)
    packaging_part = {
        "build-system": project.get("build-system"),
        "project": project.get("project"),
        "hatch": project.get("tool", {}).get("hatch"),
    }
    parts = (STAMP_FORMAT, str(ROOT), python, platform.machine(), packaging_part, CONSTRAINTS.read_text("utf-8"))
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def is_ready(extras: Sequence[str]) -> bool:
    """Whether ``.venv`` has these extras and is up to date. Takes milliseconds and starts no process."""
    stamp = Stamp.read()
    if stamp is None or not VENV_PYTHON.exists() or not set(extras) <= set(stamp.extras):
        return False
    is_inside = Path(sys.prefix) == VENV
    if is_inside and stamp.python != sys.implementation.cache_tag:
        return False
    return stamp.content == content_hash(stamp.python)


# --- making .venv -----------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def setup_lock() -> Iterator[None]:
    """Let one set-up run at a time; others wait, and then find it done.

    venv and pip inherit the lock: if this process is killed, the lock is free only when they have ended too.
    """
    with LOCK.open("a+b") as file:
        os.set_inheritable(file.fileno(), True)
        if not _try_lock(file.fileno()):
            say("another start is setting up .venv; waiting for it")
            while not _try_lock(file.fileno()):
                time.sleep(0.2)
        yield


def _try_lock(descriptor: int) -> bool:
    """Take the lock if it is free; on a file system without locks, succeed."""
    try:
        if IS_WINDOWS:
            import msvcrt  # noqa: PLC0415 - exists on Windows only

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl  # noqa: PLC0415 - exists elsewhere only

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        return True
    return True


MAKE_VENV = ("-I", "-m", "venv")
VENV_PROBE = "import sys, pip; print(sys.implementation.cache_tag if sys.version_info >= (3, 11) else '')"


def venv_tag() -> str | None:
    """The interpreter tag of a ``.venv`` that starts and has pip; None if there is none."""
    try:
        found = subprocess.run([VENV_PYTHON, "-I", "-c", VENV_PROBE], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return found.stdout.strip() or None


def make_venv() -> str:
    """Keep a working ``.venv`` or make one; return its interpreter tag."""
    stamp = Stamp.read()
    tag = None if INSTALLING.exists() else venv_tag()
    if tag is not None and (stamp is None or stamp.python == tag):
        return tag
    if VENV.exists():
        say("the .venv that is here was left half made, or does not start; making it anew")
        shutil.rmtree(VENV)
    free = shutil.disk_usage(ROOT).free
    if free < FRESH_INSTALL_BYTES:
        raise SetupError(
            f"the disk has {free / 1e9:.1f} GB left, and a fresh .venv needs about {FRESH_INSTALL_BYTES / 1e9:.0f} GB",
            f"free some space on the disk of {ROOT}",
        )
    base = getattr(sys, "_base_executable", sys.executable)
    say(f"making .venv with Python {platform.python_version()} ({base})")
    made = subprocess.run([base, *MAKE_VENV, VENV], capture_output=True, text=True, check=False, close_fds=IS_WINDOWS)
    tag = venv_tag()
    if made.returncode or tag is None:
        raise SetupError(*explain_failure(made.stdout + made.stderr, "making .venv failed"))
    return tag


FAILURES = (
    (
        r"No space left on device|Errno 28\b|Disk quota exceeded",
        "the disk is full",
        "free about 3 GB; pip also unpacks below TMPDIR",
    ),
    (
        r"CERTIFICATE_VERIFY_FAILED|SSLError",
        "the package index shows a certificate that is not trusted here",
        "set PIP_CERT to the certificates of your network",
    ),
    (
        r"NewConnectionError|NameResolution|name resolution|Timeout|timed out|unreachable|refused|ProxyError",
        "the package index cannot be reached",
        "connect to the network, or set PIP_FIND_LINKS to a folder of wheels, or name your index in pip's settings",
    ),
    (
        r"DO NOT MATCH THE HASHES|HASH MISMATCH",
        "a downloaded package has other bytes than packaging/hashes.txt names; it was not installed",
        "try again; if it stays so, ask whoever runs the package index",
    ),
    (
        r"No matching distribution found for (?P<name>\S+)",
        "pip finds no version of {name} that fits this Python and packaging/constraints.txt",
        "try another Python with ACE_PYTHON=/path/to/python3, or look at the versions your index has",
    ),
    (r"Permission denied|Errno 13\b", "a file may not be written", "check who owns the checkout and .venv"),
    (r"Read-only file system|Errno 30\b", "the disk is read-only", "copy the checkout to a folder you may write to"),
)
"""Pattern in pip's output, its meaning, and a remedy; the first row that matches is taken."""


def explain_failure(output: str, fallback: str) -> tuple[str, str]:
    """Cause and remedy, from the output of pip or venv."""
    for pattern, what, remedy in FAILURES:
        match = re.search(pattern, output)
        if match:
            return what.format(**match.groupdict()), remedy
    last_lines = [line for line in output.splitlines() if line.strip()][-5:]
    remedy = f"the whole output is in {LOG.relative_to(ROOT)}" if LOG.exists() else ""
    return "\n     ".join([fallback, *last_lines]), remedy


SYSTEM_CERTIFICATES = (
    Path("/etc/ssl/certs/ca-certificates.crt"),  # Debian, Ubuntu, Arch, Alpine
    Path("/etc/pki/tls/certs/ca-bundle.crt"),  # Fedora, RHEL
)


def trust_system_certificates() -> None:
    """Make an older pip trust the system's certificates, as newer ones do; some networks use their own."""
    found = next((path for path in SYSTEM_CERTIFICATES if path.is_file()), None)
    settings = subprocess.run(
        [VENV_PYTHON, "-I", "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    )
    if found and "cert=" not in settings.stdout:
        os.environ["PIP_CERT"] = str(found)


def run_pip(extras: Sequence[str]) -> None:
    """Install this checkout, editable, with these extras and the pinned versions.

    Where ``hashes.txt`` has lines for this system, only files with these bytes.
    """
    LOG.unlink(missing_ok=True)
    project = f"{ROOT}[{','.join(extras)}]"
    lock = locked.read_lock(CONSTRAINTS.with_name("hashes.txt"), locked.system())
    if not lock:
        say(
            "packaging/hashes.txt has no hashes for this system and Python: the versions are checked, the bytes are not"
        )
        pip_install("--constraint", str(CONSTRAINTS), "--editable", project)
        return
    with tempfile.TemporaryDirectory() as folder:
        report, exact = Path(folder, "report.json"), Path(folder, "exact.txt")
        pip_install("--dry-run", "--report", str(report), "--constraint", str(CONSTRAINTS), "--editable", project)
        try:
            lines, unknown = locked.requirements(locked.read_report(report), lock)
        except locked.OtherBytesError as error:
            raise SetupError(
                f"the package index offers other bytes than packaging/hashes.txt names: {error}; nothing was installed",
                "ask whoever runs the index; if the files are meant to differ, see packaging/refresh_constraints.py",
            ) from error
        if unknown:
            say(f"{len(unknown)} packages are not in packaging/hashes.txt: {', '.join(unknown[:5])}")
        if lines:
            exact.write_text("\n".join(lines) + "\n", encoding="utf-8")
            pip_install("--require-hashes", "--no-deps", "--requirement", str(exact))
    pip_install("--no-deps", "--editable", project)


def pip_install(*arguments: str) -> None:
    """Let the pip of ``.venv`` install something. Raises: SetupError with the cause."""
    command = [str(VENV_PYTHON), "-I", "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]
    command += ["--progress-bar", "off", *arguments]
    lines: list[str] = []
    with (
        LOG.open("a", encoding="utf-8") as log,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT, close_fds=IS_WINDOWS
        ) as pip,
    ):
        assert pip.stdout is not None
        for line in pip.stdout:
            log.write(line)
            lines.append(line)
            show_progress(line)
    show_progress("")
    if pip.returncode:
        raise SetupError(*explain_failure("".join(lines), "pip could not install the packages"))


def show_progress(line: str) -> None:
    """Show progress: on a terminal as one changing line, elsewhere only for the longest step."""
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        print(f"\r{line.strip()[: width - 1]:<{width - 1}}", end="\r", file=sys.stderr, flush=True)
    elif line.startswith("Installing collected packages"):
        say(f"installing {line.count(',') + 1} packages")


def set_up(extras: Sequence[str]) -> None:
    """Set up ``.venv`` with these extras, unless another start has just done it."""
    with setup_lock():
        if is_ready(extras):
            return
        start = time.monotonic()
        install_system_packages(with_tests="test" in extras)
        before = Stamp.read()
        tag = make_venv()
        everything = tuple(sorted({*extras, *(before.extras if before else ())}))
        say(f"installing ACE Studio with [{','.join(everything)}] into .venv; the first time this takes minutes")
        STAMP.unlink(missing_ok=True)
        INSTALLING.touch()
        trust_system_certificates()
        run_pip(everything)
        INSTALLING.unlink()
        Stamp(content_hash(tag), tag, everything).write()
        say(f".venv is ready after {time.monotonic() - start:.0f} s")


# --- words ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Start:
    """Arguments for the interpreter of ``.venv``, and what the start needs."""

    arguments: tuple[str, ...]
    extras: tuple[str, ...] = ("all",)
    is_in_root: bool = False
    is_window: bool = False


def choose_start(arguments: Sequence[str]) -> Start:
    """Choose what the command line starts; words other than setup, test, check and gpu-check go to the program."""
    word, rest = (arguments[0] if arguments else ""), tuple(arguments[1:])
    match word:
        case "setup":
            code = "print('.venv is ready; start with: packaging/ace')"
            return Start(("-I", "-c", code), ("all", "test") if "--test" in rest else ("all",))
        case "test":
            options = ("-m", "not benchmark", "-q", "--bar", "--durations=10", *xdist_options(rest), *rest)
            return Start(("-m", "pytest", *options), ("all", "test"), is_in_root=True)
        case "check":
            return Start(("packaging/check.py", *rest), ("all", "test"), is_in_root=True)
        case "gpu-check":
            return Start(("-P", str(ROOT / "packaging" / "gpu" / "check.py"), *rest), ("all", "test"))
        case _:
            # -P: files of the folder the user stands in must not shadow modules of the program.
            return Start(("-P", "-m", "ace_studio", *arguments), is_window=word in {"", "open"} or _names_a_file(word))


def _names_a_file(word: str) -> bool:
    """As ``names_a_file`` in ``ace_studio/__main__.py``, which cannot be imported before ``.venv`` is there."""
    return not word.startswith("-") and any(mark in word for mark in "./\\:")


def check_window_libraries() -> None:
    """Stop if Qt cannot start, and list all missing libraries; Qt's own message names one at a time."""
    is_offscreen = os.environ.get("QT_QPA_PLATFORM", "").startswith(("offscreen", "minimal"))
    needs = missing_needs(("window",) if is_offscreen else ("window", "screen"))
    libraries = [need for need in needs if need.what != "a font"]
    if libraries:
        describe_missing(libraries)
        raise SetupError("the window cannot start without these libraries", "the command line works without them")


def run(start: Start) -> NoReturn:
    """Replace this process by the program (on Windows: wait for it and return its exit code)."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONHOME"}
    if start.is_in_root:
        os.chdir(ROOT)
        environment.setdefault("QT_QPA_PLATFORM", "offscreen")
    command = [str(VENV_PYTHON), *start.arguments]
    if IS_WINDOWS:
        sys.exit(subprocess.run(command, env=environment, check=False).returncode)
    os.execve(command[0], command, environment)


def build_installer(arguments: Sequence[str]) -> NoReturn:
    """Build an installer with the Python below ``.venv``; it makes environments of its own, so none is needed here."""
    base = getattr(sys, "_base_executable", sys.executable)
    command = [base, "-E", "-s", str(ROOT / "packaging" / "installers" / "make.py"), *arguments]
    sys.exit(subprocess.run(command, check=False).returncode)


def main(arguments: Sequence[str]) -> NoReturn:
    """Set up ``.venv`` if needed, then start the program."""
    if arguments[:1] == ["installer"]:
        build_installer(arguments[1:])
    start = choose_start(arguments)
    try:
        if not is_ready(start.extras):
            set_up(start.extras)
        if start.is_window:
            check_window_libraries()
        run(start)
    except SetupError as error:
        say(error.what)
        if error.remedy:
            say(f"  remedy: {error.remedy}")
    except OSError as error:
        why, remedy = explain_failure(str(error), "the system refused it")
        say(f"set-up failed: {error}")
        say(f"  why: {why.partition(chr(10))[0]}")
        if remedy:
            say(f"  remedy: {remedy}")
    except KeyboardInterrupt:
        say("stopped; the next start continues")
        sys.exit(130)
    sys.exit(JOB_FAILED)


if __name__ == "__main__":
    main(sys.argv[1:])
