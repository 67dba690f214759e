"""A minimal system in a folder, made by debootstrap, in which programs run as its user and without network.

Root, debootstrap, Xvfb, xdotool and unshare are needed. Every command and its output goes to a log.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import platform
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from steps import BuildError, run, say

WARM_STARTS = 5
"""Starts of the window after the first, whose median is noted."""
LONGEST_START_S = 60.0
TOOLS = ("debootstrap", "Xvfb", "xdotool", "unshare")
USER, USER_ID, HOME = "ada", "1000", "home/ada"
"""The user of the system, who has no special rights, and the home folder relative to the root."""


class CleanRoot:
    """The folder of the system, and the steps that are done in it."""

    def __init__(self, folder: Path, log: Path) -> None:
        if os.geteuid() != 0:
            raise BuildError("a root file system can be made by root only", "run it with sudo")
        for tool in TOOLS:
            if shutil.which(tool) is None:
                raise BuildError(f"{tool} is not installed", f"apt-get install {tool.lower()}")
        self.folder = folder
        self.home = folder / HOME
        self._log = log
        log.write_text("", encoding="utf-8")
        self._rows: list[str] = []

    def step(self, name: str, action: Callable[[], object]) -> None:
        """Do a step, and note its time.

        Raises: BuildError that names the step and the log.
        """
        started = time.monotonic()
        self.note(f"== {name}")
        try:
            action()
        except (BuildError, AssertionError, subprocess.TimeoutExpired) as error:
            self.note(f"failed: {error}")
            raise BuildError(f"{name}: {error}", f"the log is {self._log}") from error
        self.fact(name, f"{time.monotonic() - started:.1f} s")

    def fact(self, name: str, value: str) -> None:
        """Note a figure, which the summary repeats."""
        self._rows.append(f"{name:<52}{value}")
        self.note(f"   {name}: {value}")
        say(f"{name}: {value}")

    def note(self, text: str) -> None:
        """Write a line to the log."""
        with self._log.open("a", encoding="utf-8") as log:
            log.write(text + "\n")

    def summary(self, title: str) -> str:
        """Date, machine and all figures, without any path of this machine."""
        processor = next(
            (line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
            platform.machine(),
        )
        memory_kb = next((int(line.split()[1]) for line in _lines("/proc/meminfo") if "MemTotal" in line), 0)
        day = datetime.datetime.now(datetime.UTC).date()
        head = f"{title}, {day}, {processor}, {os.cpu_count()} cores, {memory_kb / 1e6:.0f} GB, network cut"
        return "\n".join([head, *self._rows, ""])

    def inside(self, *words: str, user: str = "root", network: bool = False, variables: tuple[str, ...] = ()) -> str:
        """Run a command in the root, by default with no network interface at all; return what it printed."""
        printed = run(self.command(*words, user=user, network=network, variables=variables))
        self.note(f"$ {' '.join(words)}\n{printed.strip()}")
        return printed

    def command(
        self, *words: str, user: str = "root", network: bool = False, variables: tuple[str, ...] = ()
    ) -> list[str | Path]:
        """The words of this machine that run a command in the root."""
        cut = () if network else ("unshare", "--net", "--")
        home = "/root" if user == "root" else f"/{HOME}"
        become = () if user == "root" else ("runuser", "-u", user, "--")
        clean = ("env", "-i", f"HOME={home}", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", *variables)
        return [*cut, "chroot", self.folder, *become, *clean, *words]

    def make(self, suite: str, mirror: str) -> None:
        """Make the minimal system of a suite; of a mirror whose keys are not here the signature is not checked."""
        if self.folder.exists():
            shutil.rmtree(self.folder)
        words: list[str | Path] = ["debootstrap", "--variant=minbase"]
        scripts = Path("/usr/share/debootstrap/scripts")
        if "ubuntu" in mirror:
            keys = Path("/usr/share/keyrings/ubuntu-archive-keyring.gpg")
            words += ["--components=main,universe", f"--keyring={keys}" if keys.exists() else "--no-check-gpg"]
        words += [suite, self.folder, *([mirror] if mirror else [])]
        if mirror and not (scripts / suite).exists():
            words.append(scripts / "gutsy")  # one script for every Ubuntu
        run(words)
        self.inside("useradd", "--create-home", "--uid", USER_ID, USER)

    @contextlib.contextmanager
    def mounted(self) -> Iterator[None]:
        """What a running system has: processes, terminals, shared memory, and the X server of this machine."""
        x11 = Path("/tmp/.X11-unix")
        x11.mkdir(mode=0o1777, exist_ok=True)
        mounts = (
            ("-t", "proc", "proc", self.folder / "proc"),
            ("-t", "devpts", "devpts", self.folder / "dev" / "pts"),
            ("-t", "tmpfs", "tmpfs", self.folder / "dev" / "shm"),
            ("--bind", x11, self.folder / "tmp" / ".X11-unix"),
        )
        with contextlib.ExitStack() as done:
            for words in mounts:
                words[-1].mkdir(exist_ok=True)
                run(["mount", *words])
                done.callback(run, ["umount", "--lazy", words[-1]])
            yield

    def fetch(self, needed: str) -> None:
        """Install what a program needs, as of a Debian field ``Depends``, so that it itself needs no network."""
        quiet = ("DEBIAN_FRONTEND=noninteractive",)
        self.inside("apt-get", "update", network=True, variables=quiet)
        self.inside("apt-get", "satisfy", "-y", needed, network=True, variables=quiet)

    def show_window(self, program: str, picture: Path) -> None:
        """Start the window several times on a virtual screen of this machine, and note how long until it is there."""
        sockets = Path("/tmp/.X11-unix")
        number = next(number for number in range(77, 1000) if not (sockets / f"X{number}").exists())
        display = f":{number}"
        screen = subprocess.Popen(["Xvfb", display, "-ac", "-screen", "0", "1600x1000x24"], stderr=subprocess.DEVNULL)
        window = None
        printed = tempfile.NamedTemporaryFile()  # noqa: SIM115 - closed below
        try:
            while not (sockets / f"X{number}").exists():
                time.sleep(0.05)
            load, seconds = os.getloadavg()[0], []
            for _ in range(1 + WARM_STARTS):
                started = time.monotonic()
                words = self.command(program, user=USER, variables=(f"DISPLAY={display}",))
                window = subprocess.Popen(words, stdout=printed, stderr=subprocess.STDOUT)
                while not _has_window(display):
                    if window.poll() is not None or time.monotonic() - started > LONGEST_START_S:
                        said = Path(printed.name).read_text("utf-8", "replace")
                        raise BuildError(f"no window was shown; it printed:\n{said[-2000:]}")
                    time.sleep(0.01)
                seconds.append(time.monotonic() - started)
                time.sleep(8)  # until the engine is ready
                if shutil.which("xwd"):
                    run(["xwd", "-display", display, "-root", "-out", picture])
                window.terminate()
                window.wait(20)
            first, *warm = seconds
            self.fact("the window is shown, first start", f"{first:.2f} s")
            self.fact("the window is shown, second start", f"{warm[0]:.2f} s")
            self.fact(f"the window is shown, median of {WARM_STARTS} more", f"{statistics.median(warm):.2f} s")
            self.fact("load of the machine before these starts", f"{load:.1f}")
        finally:
            if window is not None and window.poll() is None:
                window.kill()
            printed.close()
            screen.terminate()
            screen.wait(10)

    def named(self, *names: str) -> set[str]:
        """The paths, relative to the root and not in ``/tmp``, ``/proc`` or ``/dev``, that hold one of the names."""
        found = set()
        for top in self.folder.iterdir():
            if top.name in ("tmp", "proc", "dev", "sys") or top.is_symlink():
                continue
            for path in top.rglob("*"):
                inner = str(path.relative_to(self.folder))
                if any(name in inner for name in names):
                    found.add(inner)
        return found


def _has_window(display: str) -> bool:
    """Whether the window is on the screen. Asked again and again: ``xdotool --sync`` looks only every half second."""
    find = ["xdotool", "search", "--onlyvisible", "--name", "ACE Studio"]
    done = subprocess.run(find, env={**os.environ, "DISPLAY": display}, capture_output=True, check=False)
    return done.returncode == 0


def size_of(folder: Path) -> str:
    """The size of all files in a folder, in words."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return f"{sum(path.stat().st_size for path in files) / 1e6:.0f} MB"


def expect(is_true: bool, otherwise: str) -> None:
    """Raise BuildError with these words if something is not as it should be."""
    if not is_true:
        raise BuildError(otherwise)


def _lines(path: str) -> list[str]:
    with contextlib.suppress(OSError):
        return Path(path).read_text(encoding="utf-8").splitlines()
    return []
