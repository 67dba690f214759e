"""Finds and installs what pip cannot: Qt's system libraries, a font, a C++ compiler (on Debian and Ubuntu).

Standard library only, because ``bootstrap.py`` imports it.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path


def say(text: str) -> None:
    """Print a message to stderr; stdout belongs to the program that is started afterwards."""
    print(f"ace: {text}", file=sys.stderr, flush=True)


def has_library(name: str) -> Callable[[], bool]:
    """Make a probe of whether the dynamic loader finds a shared library."""

    def probe() -> bool:
        try:
            ctypes.CDLL(name)
        except OSError:
            return False
        return True

    return probe


def has_compiler() -> bool:
    """Whether there is a C++ compiler that torch uses."""
    return bool(os.environ.get("CXX")) or any(shutil.which(name) for name in ("g++", "c++", "clang++"))


def has_python_header() -> bool:
    """Whether C++ code can be compiled against this Python."""
    return Path(sysconfig.get_paths()["include"], "Python.h").is_file()


def has_program(name: str) -> Callable[[], bool]:
    """Make a probe of whether a program is installed."""
    return lambda: shutil.which(name) is not None


def has_fonts() -> bool:
    """Whether there is any scalable font."""
    folders = (Path("/usr/share/fonts"), Path("/usr/local/share/fonts"), Path.home() / ".local/share/fonts")
    return any(next(folder.rglob("*.[to]tf"), None) for folder in folders)


@dataclass(frozen=True)
class SystemNeed:
    """A need outside of Python; ``purpose`` is a key of `PURPOSES`."""

    purpose: str
    what: str
    is_there: Callable[[], bool]
    packages: tuple[str, ...]
    """Debian package names, the newest first; the first that apt knows is taken."""


def _library(purpose: str, name: str, *packages: str) -> SystemNeed:
    return SystemNeed(purpose, name, has_library(name), packages)


SYSTEM_NEEDS = (
    _library("window", "libGL.so.1", "libgl1"),
    _library("window", "libEGL.so.1", "libegl1"),
    _library("window", "libxkbcommon.so.0", "libxkbcommon0"),
    _library("window", "libfontconfig.so.1", "libfontconfig1"),
    _library("window", "libdbus-1.so.3", "libdbus-1-3"),
    _library("window", "libglib-2.0.so.0", "libglib2.0-0t64", "libglib2.0-0"),
    SystemNeed("window", "a font", has_fonts, ("fonts-dejavu-core",)),
    _library("screen", "libxkbcommon-x11.so.0", "libxkbcommon-x11-0"),
    _library("screen", "libxcb-cursor.so.0", "libxcb-cursor0"),
    _library("screen", "libxcb-icccm.so.4", "libxcb-icccm4"),
    _library("screen", "libxcb-keysyms.so.1", "libxcb-keysyms1"),
    _library("screen", "libxcb-shape.so.0", "libxcb-shape0"),
    SystemNeed("inductor", "a C++ compiler", has_compiler, ("g++",)),
    SystemNeed("inductor", "Python.h", has_python_header, (f"python3.{sys.version_info.minor}-dev", "python3-dev")),
    *(
        SystemNeed("test", name, has_program(name), (package,))
        for name, package in (("Xvfb", "xvfb"), ("openbox", "openbox"), ("xdotool", "xdotool"))
    ),
)

PURPOSES = {
    "window": "the window needs them",
    "screen": "a window on an X display needs them",
    "inductor": "the Inductor target compiles C++ with them",
    "test": "tests press keys and click on a screen of their own with them",
}


def missing_needs(purposes: Sequence[str] = tuple(PURPOSES)) -> list[SystemNeed]:
    """The unsatisfied rows; always empty outside of Linux, where Qt's wheels contain its libraries."""
    if sys.platform != "linux":
        return []
    return [need for need in SYSTEM_NEEDS if need.purpose in purposes and not need.is_there()]


def is_debian() -> bool:
    """Whether this is Debian or Ubuntu with apt-get."""
    return Path("/etc/debian_version").is_file() and shutil.which("apt-get") is not None


def apt_names(needs: Sequence[SystemNeed]) -> list[str]:
    """One Debian package per row, without repeats: the first name that apt knows."""

    def is_known(package: str) -> bool:
        found = subprocess.run(["apt-cache", "show", package], capture_output=True, check=False)
        return found.returncode == 0

    names = [next(filter(is_known, need.packages), need.packages[-1]) for need in needs]
    return list(dict.fromkeys(names))


def describe_missing(needs: Sequence[SystemNeed]) -> None:
    """Print what is missing, its purpose, and the command that installs it."""
    for purpose, why in PURPOSES.items():
        names = [need.what for need in needs if need.purpose == purpose]
        if names:
            say(f"missing on this system: {', '.join(names)} ({why})")
    if is_debian():
        say(f"this installs them:  sudo apt-get install -y {' '.join(apt_names(needs))}")
    else:
        say("install the packages of your distribution that hold these files")


def apt_get(*words: str) -> bool:
    """Run apt-get, show its output only if it failed, and return whether it succeeded."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(
        ["apt-get", "-q", "-y", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
        check=False,
    )
    if done.returncode:
        say(f"apt-get {words[0]} failed:")
        print(*done.stdout.splitlines()[-10:], sep="\n", file=sys.stderr)
    return done.returncode == 0


def install_system_packages(*, with_tests: bool = True) -> None:
    """Install missing packages as root on Debian, else print how; never stops the set-up."""
    purposes = [purpose for purpose in PURPOSES if with_tests or purpose != "test"]
    needs = missing_needs(purposes)
    if needs and is_debian() and os.geteuid() == 0 and not os.environ.get("ACE_NO_APT"):
        apt_get("update")
        names = apt_names(needs)
        say(f"installing with apt-get, which takes a minute: {' '.join(names)}")
        apt_get("install", "--no-install-recommends", *names)
        needs = missing_needs(purposes)
    if needs:
        describe_missing(needs)
