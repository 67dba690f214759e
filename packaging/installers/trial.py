"""Tries what was built in a clean system without network, and keeps a log and a summary of sizes and seconds.

    sudo packaging/ace installer trial --out DIR --deb FILE --with-pack FILE [--previous DEB] [--suite bookworm]
    sudo packaging/ace installer trial --out DIR --tar FILE --with-pack FILE [--suite noble --mirror ADDRESS]

Makes a minimal system by debootstrap, fetches the libraries that a desktop has, and cuts the network. A package goes
through its life: the version before it, the engine from the pack, the example, the upgrade, the window on a virtual
screen, the example again, removal (history, settings and packs of the user stay), purge (nothing stays). A portable
archive is unpacked by a user without rights, used, entered into the menu, and deleted. The first failure ends it.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from functools import partial
from pathlib import Path

from clean_root import HOME, USER, USER_ID, CleanRoot, expect, size_of
from deb import depends
from freeze import NAME
from steps import run

ONLY_BEFORE = f"opt/{NAME}/program/only-in-the-version-before"
SETTINGS = f"{HOME}/.config/{NAME}/settings.json"
HISTORY = f"{HOME}/.local/share/{NAME}/history.sqlite"
OF_ANOTHER = f"root/.config/{NAME}"
"""Settings of another user, which nothing may touch."""
QUIET = ("DEBIAN_FRONTEND=noninteractive", f"SUDO_UID={USER_ID}")


def try_deb(out: Path, work: Path, deb: Path, pack: Path, *, previous: Path | None, suite: str, mirror: str) -> Path:
    """Go through the life of a package; returns the summary."""
    root = CleanRoot(work / f"root-{suite}", out / f"trial-{suite}.log")
    root.step(f"a minimal {suite}", partial(root.make, suite, mirror))
    before = version_before(deb, previous or deb, work)
    for file in (deb, pack, before):
        shutil.copy(file, root.folder / "tmp")
    with root.mounted():
        fields = ("Depends", "Recommends")
        needed = ", ".join(filter(None, (_field(deb, field) for field in fields)))
        root.step("fetching what it depends on", partial(root.fetch, needed))
        there = root.named(NAME, "AceStudio")
        _old_version(root, before, pack)
        _upgrade(root, deb)
        root.step("the window", partial(root.show_window, f"/usr/bin/{NAME}", out / f"{suite}.xwd"))
        root.step("the example", partial(_run_example, root, f"/usr/bin/{NAME}"))
        _remove(root, there)
    return _write_summary(root, out / f"trial-{suite}.txt", f"{deb.name} in a clean {suite}")


def try_tar(out: Path, work: Path, tar: Path, pack: Path, *, suite: str, mirror: str) -> Path:
    """Use a portable archive as a user without rights; returns the summary."""
    root = CleanRoot(work / f"root-{suite}-tar", out / f"trial-{suite}-tar.log")
    root.step(f"a minimal {suite}", partial(root.make, suite, mirror))
    for file in (tar, pack):
        shutil.copy(file, root.folder / "tmp")
    folder = f"/{HOME}/my programs"
    home = f"{folder}/{tar.name.removesuffix('.tar.gz')}"
    program = f"{home}/{NAME}"
    with root.mounted():
        _, *libraries = depends([])
        root.step("fetching the libraries of a desktop", partial(root.fetch, ", ".join([*libraries, "g++"])))
        root.inside("mkdir", folder, user=USER)
        root.fact("portable archive", f"{tar.stat().st_size / 1e6:.0f} MB")
        unpack = partial(root.inside, "tar", "-xf", f"/tmp/{tar.name}", "-C", folder, user=USER)
        root.step("unpacking it in a folder with a space", unpack)
        root.fact("unpacked", size_of(root.folder / home[1:]))
        root.step("the command line", partial(root.inside, program, "--help", user=USER))
        _install_pack(root, program, pack)
        root.step("the engine, first start (doctor)", partial(root.inside, program, "doctor", user=USER))
        root.step("the window", partial(root.show_window, program, out / f"{suite}-tar.xwd"))
        root.step("the example", partial(_run_example, root, program))
        root.step("into the menu and out of it", partial(_menu, root, home))
        root.step("deleting it", partial(root.inside, "rm", "-r", folder, user=USER))
        mine = (f"{HOME}/.config", f"{HOME}/.local", f"{HOME}/.cache")
        left = {path for path in root.named(NAME, "AceStudio") if not path.startswith(mine)}
        root.step("only the user's own is left", lambda: expect(not left, f"left behind: {sorted(left)[:5]}"))
    return _write_summary(root, out / f"trial-{suite}-tar.txt", f"{tar.name} in a clean {suite}")


def version_before(deb: Path, previous: Path, work: Path) -> Path:
    """A package of the version before: ``previous`` with a lower number if it has none, and a file that is gone now."""
    tree = work / "before"
    shutil.rmtree(tree, ignore_errors=True)
    run(["dpkg-deb", "--raw-extract", previous, tree])
    new, old = _field(deb, "Version"), _field(previous, "Version")
    if subprocess.run(["dpkg", "--compare-versions", old, "lt", new], check=False).returncode:
        control = tree / "DEBIAN" / "control"
        control.write_text(
            control.read_text("utf-8").replace(f"\nVersion: {old}\n", f"\nVersion: {new}~before\n"), "utf-8"
        )
    (tree / ONLY_BEFORE).write_text("")
    made = work / "before.deb"
    run(["dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "--build", tree, made])
    return made


def _field(deb: Path, name: str) -> str:
    return run(["dpkg-deb", "--field", deb, name]).strip()


def _old_version(root: CleanRoot, before: Path, pack: Path) -> None:
    """Install the version before, and leave a history and settings with it."""
    install = ("apt-get", "install", "-y", f"/tmp/{before.name}")
    root.step("installing the version before, without network", partial(root.inside, *install, variables=QUIET))
    root.note(root.inside("dpkg-query", "--show", NAME))
    expect((root.folder / ONLY_BEFORE).exists(), "the version before is not there")
    _install_pack(root, NAME, pack)
    root.step("the engine, first start (doctor)", partial(root.inside, NAME, "doctor", user=USER))
    root.step("the example in the version before", partial(_run_example, root, NAME))
    for folder in (Path(SETTINGS).parent, Path(OF_ANOTHER)):
        (root.folder / folder).mkdir(parents=True, exist_ok=True)
        (root.folder / folder / "settings.json").write_text('{"theme": "light"}', encoding="utf-8")
    root.inside("chown", "-R", f"{USER}:", f"/{HOME}/.config")


def _install_pack(root: CleanRoot, program: str, pack: Path) -> None:
    root.fact("engine pack", f"{pack.stat().st_size / 1e6:.0f} MB")
    with pack.open("rb") as data:
        sha256 = hashlib.file_digest(data, "sha256").hexdigest()
    install = partial(root.inside, program, "engine", "install", f"/tmp/{pack.name}", "--trust", sha256, user=USER)
    root.step("installing the engine pack", install)
    root.fact("engine pack, installed", size_of(root.home / ".local" / "share" / NAME / "engines"))


def _upgrade(root: CleanRoot, deb: Path) -> None:
    old = _runs(root)
    expect(len(old) == 1, "the version before has no history")
    install = partial(root.inside, "apt-get", "install", "-y", f"/tmp/{deb.name}", variables=QUIET)
    root.fact("package", f"{deb.stat().st_size / 1e6:.0f} MB")
    root.step("the upgrade, without network", install)
    root.fact("package, installed", size_of(root.folder / "opt" / NAME))
    root.note(root.inside("dpkg-query", "--show", NAME))
    gone = not (root.folder / ONLY_BEFORE).exists()
    root.step("files of the version before are gone", lambda: expect(gone, f"{ONLY_BEFORE} is still there"))
    root.step("its history is there", lambda: expect(_runs(root) == old, "the history is another"))


def _runs(root: CleanRoot) -> list[int]:
    return [one["id"] for one in json.loads(root.inside(NAME, "history", "--json", user=USER))]


def _run_example(root: CleanRoot, program: str) -> None:
    root.inside(program, "demo", "--out", f"/{HOME}/demo", user=USER)
    document = json.loads((root.home / "demo" / "result.json").read_text("utf-8"))
    verified = [f"{one['target']} {one['precision']}" for one in document["runs"] if one.get("verified")]
    expect(bool(verified), "no artifact was verified")
    root.fact("verified artifacts", ", ".join(verified))


def _remove(root: CleanRoot, there: set[str]) -> None:
    """Remove, then purge; look each time what is left of all that was not there before."""
    root.step("removal", partial(root.inside, "apt-get", "remove", "-y", NAME, variables=QUIET))
    mine = (f"{HOME}/", OF_ANOTHER, "root/.", "var/lib/dpkg/info/")
    left = {path for path in root.named(NAME, "AceStudio") - there if not path.startswith(mine)}
    root.step("nothing of the program is left", lambda: expect(not left, f"left behind: {sorted(left)[:5]}"))
    kept = all((root.folder / path).is_file() for path in (HISTORY, SETTINGS))
    root.step("history, settings and packs are kept", lambda: expect(kept, "the user's files are gone"))
    root.step("purge", partial(root.inside, "apt-get", "purge", "-y", NAME, variables=QUIET))
    own = {path for path in root.named(NAME) - there if not path.startswith(OF_ANOTHER)}
    root.step("nothing at all is left", lambda: expect(not own, f"left behind: {sorted(own)[:5]}"))
    other = (root.folder / OF_ANOTHER / "settings.json").is_file()
    root.step("what another user has is untouched", lambda: expect(other, "it is gone"))


def _menu(root: CleanRoot, home: str) -> None:
    entry = root.home / ".local" / "share" / "applications" / f"{NAME}.desktop"
    root.inside(f"{home}/desktop-entry", "install", user=USER)
    expect(f'Exec="{home}/{NAME}" open' in entry.read_text("utf-8"), "the entry does not name the program")
    root.inside(f"{home}/desktop-entry", "remove", user=USER)
    expect(not entry.exists(), "the entry is still there")


def _write_summary(root: CleanRoot, path: Path, title: str) -> Path:
    text = root.summary(title)
    root.note(text)
    path.write_text(text, encoding="utf-8")
    return path
