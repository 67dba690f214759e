"""Tries the Debian package and an engine pack in a clean root without network, and keeps a log.

    sudo packaging/ace installer trial --out DIR --deb FILE --with-pack FILE [--suite bookworm]

Makes a minimal Debian by debootstrap, fetches what the .deb depends on, and cuts the network. Then: install,
the engine from the pack, the window on a virtual screen (seconds until it is shown, and a picture), the example, an
upgrade, removal, purge. Ends with the first step that fails. Root, debootstrap, Xvfb and xdotool are needed.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from freeze import NAME
from steps import BuildError, run, say, version

DISPLAY = ":77"
USER_DATA = "root/.local/share/ace-studio"


class Trial:
    """A clean root, and the steps that are done in it. Every command and its output goes to the log."""

    def __init__(self, root: Path, log: Path) -> None:
        self.root = root
        self._log = log.open("w", encoding="utf-8")
        self.seconds: dict[str, float] = {}

    def step(self, name: str, action: Callable[[], object]) -> None:
        """Do a step, and note its time."""
        started = time.monotonic()
        self._note(f"== {name}")
        try:
            action()
        except (BuildError, AssertionError, subprocess.TimeoutExpired) as error:
            self._note(f"failed: {error}")
            raise BuildError(f"{name}: {error}", f"the log is {self._log.name}") from error
        self.seconds[name] = time.monotonic() - started
        self._note(f"   {self.seconds[name]:.1f} s")
        say(f"{name}: {self.seconds[name]:.1f} s")

    def inside(self, *words: str, network: bool = False) -> str:
        """Run a command in the root, by default with no network interface at all."""
        cut = () if network else ("unshare", "--net", "--")
        clean = ("env", "-i", "HOME=/root", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive")
        printed = run([*cut, "chroot", self.root, *clean, *words])
        self._note(f"$ {' '.join(words)}\n{printed.strip()}")
        return printed

    def files(self) -> set[str]:
        """The paths of the package: whatever is below /opt or names the program in /usr."""
        return {
            str(path.relative_to(self.root))
            for folder in ("opt", "usr")
            for path in (self.root / folder).rglob("*")
            if NAME in str(path.relative_to(self.root)).lower() or "AceStudio" in path.name
        }

    def _note(self, text: str) -> None:
        self._log.write(text + "\n")
        self._log.flush()


def try_deb(out: Path, work: Path, deb: Path, pack: Path, suite: str) -> Path:
    """Go through the life of a package; returns the log."""
    if os.geteuid() != 0:
        raise BuildError("a root file system can be made by root only", "run it with sudo")
    for tool in ("debootstrap", "Xvfb", "xdotool", "unshare"):
        if shutil.which(tool) is None:
            raise BuildError(f"{tool} is not installed", f"apt-get install {tool.lower()}")
    root = work / f"root-{suite}"
    log = out / f"trial-{suite}.log"
    trial = Trial(root, log)
    if root.exists():
        shutil.rmtree(root)
    trial.step(f"a minimal {suite}", lambda: run(["debootstrap", "--variant=minbase", suite, root]))
    for file in (deb, pack):
        shutil.copy(file, root / "tmp")
    with _mounted(root):
        _go_through(trial, out, work, deb, pack)
    return log


def _go_through(trial: Trial, out: Path, work: Path, deb: Path, pack: Path) -> None:
    local, picture = f"/tmp/{deb.name}", out / f"{trial.root.name}.xwd"
    trial.step("fetching what it depends on", lambda: _fetch(trial, deb))
    before = trial.files()
    trial.step("installing without network", lambda: trial.inside("apt-get", "install", "-y", local))
    trial.step("the command line", lambda: trial.inside(NAME, "--help"))
    trial.step("installing the engine pack", lambda: trial.inside(NAME, "engine", "install", f"/tmp/{pack.name}"))
    trial.step("what this machine has", lambda: trial.inside(NAME, "doctor"))
    trial.step("the window", lambda: _show_window(trial, picture))
    trial.step("the example", lambda: _run_example(trial))
    newer = work / "newer.deb"
    trial.step("an upgrade", lambda: _upgrade(trial, deb, newer))
    trial.step("removal", lambda: trial.inside("apt-get", "purge", "-y", NAME))
    left = trial.files() - before
    trial.step("nothing left", lambda: _expect(not left, f"left behind: {sorted(left)[:5]}"))
    kept = any((trial.root / USER_DATA).rglob("*.sqlite*"))
    trial.step("the user's history is kept", lambda: _expect(kept, "the folder of the user's history is empty"))


@contextlib.contextmanager
def _mounted(root: Path) -> Iterator[None]:
    """What a running system has: processes, terminals, shared memory, and the X server of this machine."""
    x11 = Path("/tmp/.X11-unix")
    x11.mkdir(mode=0o1777, exist_ok=True)
    mounts = (
        ("-t", "proc", "proc", root / "proc"),
        ("-t", "devpts", "devpts", root / "dev" / "pts"),
        ("-t", "tmpfs", "tmpfs", root / "dev" / "shm"),
        ("--bind", x11, root / "tmp" / ".X11-unix"),
    )
    with contextlib.ExitStack() as done:
        for words in mounts:
            words[-1].mkdir(exist_ok=True)
            run(["mount", *words])
            done.callback(run, ["umount", "--lazy", words[-1]])
        yield


def _fetch(trial: Trial, deb: Path) -> None:
    """Install what the package depends on and recommends, so that the package itself needs no network."""
    fields = ("Depends", "Recommends")
    needed = ", ".join(filter(None, (run(["dpkg-deb", "--field", deb, field]).strip() for field in fields)))
    trial.inside("apt-get", "update", network=True)
    trial.inside("apt-get", "satisfy", "-y", needed, network=True)


def _show_window(trial: Trial, picture: Path) -> None:
    """Start the window on a virtual screen of this machine, and say how long until it is there."""
    screen = subprocess.Popen(["Xvfb", DISPLAY, "-screen", "0", "1600x1000x24"], stderr=subprocess.DEVNULL)
    program = None
    try:
        place = Path("/tmp/.X11-unix") / f"X{DISPLAY[1:]}"
        while not place.exists():
            time.sleep(0.05)
        for attempt in ("cold", "warm"):
            started = time.monotonic()
            program = subprocess.Popen(
                ["unshare", "--net", "--", "chroot", trial.root, "env", "-i", f"DISPLAY={DISPLAY}", "HOME=/root",
                 "PATH=/usr/bin:/bin", "LANG=C.UTF-8", f"/usr/bin/{NAME}"],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            find = ["env", f"DISPLAY={DISPLAY}", "timeout", "60", "xdotool", "search", "--sync", "--onlyvisible"]
            run([*find, "--name", "ACE Studio"])
            say(f"the window is shown after {time.monotonic() - started:.2f} s ({attempt})")
            time.sleep(8)  # until the engine is ready
            if shutil.which("xwd"):
                run(["xwd", "-display", DISPLAY, "-root", "-out", picture])
            program.terminate()
            program.wait(20)
    finally:
        if program is not None and program.poll() is None:
            program.kill()
        screen.terminate()
        screen.wait(10)


def _run_example(trial: Trial) -> None:
    trial.inside(NAME, "demo", "--out", "/tmp/demo")
    document = json.loads((trial.root / "tmp" / "demo" / "result.json").read_text("utf-8"))
    verified = [one["target"] for one in document["runs"] if one.get("verified")]
    _expect(bool(verified), "no artifact was verified")


def _upgrade(trial: Trial, deb: Path, newer: Path) -> None:
    tree = newer.with_suffix("")
    shutil.rmtree(tree, ignore_errors=True)
    run(["dpkg-deb", "--raw-extract", deb, tree])
    control = tree / "DEBIAN" / "control"
    control.write_text(control.read_text("utf-8").replace(f"Version: {version()}", f"Version: {version()}.1"), "utf-8")
    run(["dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "--build", tree, newer])
    shutil.copy(newer, trial.root / "tmp" / "newer.deb")
    trial.inside("dpkg", "--install", "/tmp/newer.deb")
    trial.inside(NAME, "history", "--json")


def _expect(is_true: bool, otherwise: str) -> None:
    if not is_true:
        raise BuildError(otherwise)
