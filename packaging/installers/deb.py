"""The Debian package: the frozen program in /opt, and what a desktop looks for in /usr/share."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

from contents import DOCUMENT, LICENCES, licence_name
from freeze import NAME, freeze, window_python
from steps import ROOT, BuildError, run, say, version

sys.path.insert(0, str(ROOT / "packaging"))
from system_packages import SYSTEM_NEEDS

SUMMARY = "compress, compare and export PyTorch models"
DESCRIPTION = """\
 Trace a model, set example shapes in a table, quantize and prune it under an
 accuracy goal, lower it to several runtimes, measure latency and accuracy, and
 export the verified artifact. Everything happens on this machine.
 .
 The window and the command line are in this package. The engine with PyTorch
 comes as an engine pack, or is any Python that has it.
"""
COMPLETIONS = {
    "bash": "bash-completion/completions/ace-studio",
    "zsh": "zsh/vendor-completions/_ace-studio",
    "fish": "fish/vendor_completions.d/ace-studio.fish",
}
"""Shell -> where below /usr/share it looks for completions."""
SCRIPTS = {
    "prerm": f"""\
#!/bin/sh
# An engine that root started left bytecode beside the sources.
set -e
find /opt/{NAME} -depth -type d -name __pycache__ -exec rm -r {{}} +
""",
    "postrm": f"""\
#!/bin/sh
# Purging also removes history, settings, engine packs and caches of the user who purges, as that user; what other
# users of this machine have is theirs.
set -e
[ "$1" = purge ] || exit 0
user=${{SUDO_UID:-${{PKEXEC_UID:-0}}}}
entry=$(getent passwd "$user") || exit 0
name=${{entry%%:*}}
home=$(printf '%s' "$entry" | cut -d: -f6)
for folder in .config .local/share .local/state .cache; do
    if [ -d "$home/$folder/{NAME}" ]; then
        runuser -u "$name" -- rm -rf -- "$home/$folder/{NAME}" || true
    fi
done
""",
}
"""Script of the package -> its text."""


def build_deb(out: Path, work: Path) -> Path:
    """Build the package; returns it."""
    if shutil.which("dpkg-deb") is None:
        raise BuildError("dpkg-deb is not installed", "apt-get install dpkg, on Debian or Ubuntu")
    machine = run(["dpkg", "--print-architecture"]).strip()
    tree = work / "deb"
    shutil.rmtree(tree, ignore_errors=True)
    home = tree / "opt" / NAME
    home.parent.mkdir(parents=True)
    shutil.copytree(freeze(work), home, symlinks=True)
    (tree / "usr" / "bin").mkdir(parents=True)
    (tree / "usr" / "bin" / NAME).symlink_to(f"/opt/{NAME}/{NAME}")
    run([window_python(work), ROOT / "packaging" / "linux" / "stage.py", tree])
    write_completions(home / NAME, tree / "usr" / "share")
    _stage_documents(tree, home)
    for path in tree.rglob("*"):
        if not path.is_symlink():
            is_program = path.is_dir() or path.stat().st_mode & 0o100
            path.chmod(0o755 if is_program else 0o644)
    _write_control(tree, machine)
    package = out / f"{NAME}_{version()}_{machine}.deb"
    say("packing")
    run(["dpkg-deb", "--root-owner-group", "-Zxz", "--build", tree, package])
    return package


def write_completions(program: Path, share: Path) -> None:
    """Write what the shells complete the command with."""
    for shell, place in COMPLETIONS.items():
        path = share / place
        path.parent.mkdir(parents=True)
        path.write_text(run([program, "completion", shell]), encoding="utf-8")


def _stage_documents(tree: Path, home: Path) -> None:
    documents = tree / "usr" / "share" / "doc" / NAME
    documents.mkdir(parents=True, exist_ok=True)
    (documents / "copyright").write_text(copyright_text(home), encoding="utf-8")
    with (documents / "changelog.gz").open("wb") as file:
        file.write(gzip.compress((ROOT / "CHANGELOG.md").read_bytes(), mtime=0))


def copyright_text(home: Path) -> str:
    """Our licence, and name, version and licence of everything else in the package."""
    components = json.loads((home / DOCUMENT).read_text("utf-8"))["components"]
    lines = (
        f"  {one['name']} {one.get('version', '')}: {' AND '.join(filter(None, map(licence_name, one['licenses'])))}\n"
        for one in sorted(components, key=lambda one: one["name"].casefold())
        if one["name"] != NAME
    )
    return (
        f"ACE Studio, Copyright the ACE Studio authors, is under the Apache License 2.0, whose text is below.\n\n"
        f"The package also holds, unchanged and as files of their own:\n\n{''.join(lines)}\n"
        f"Their texts are in /opt/{NAME}/{LICENCES}, one file each.\n\n{(ROOT / 'LICENSE').read_text('utf-8')}"
    )


def _write_control(tree: Path, machine: str) -> None:
    files = sorted(path for path in tree.rglob("*") if path.is_file() and not path.is_symlink())
    size = sum(path.stat().st_size for path in files)
    folder = tree / "DEBIAN"
    folder.mkdir()
    (folder / "control").write_text(
        f"Package: {NAME}\nVersion: {version()}\nArchitecture: {machine}\nMaintainer: The ACE Studio authors\n"
        f"Installed-Size: {size // 1024}\nDepends: {', '.join(depends(files))}\nRecommends: g++\nSection: science\n"
        f"Priority: optional\nDescription: {SUMMARY}\n{DESCRIPTION}",
        encoding="utf-8",
    )
    for name, text in SCRIPTS.items():
        (folder / name).write_text(text, encoding="utf-8")
        (folder / name).chmod(0o755)
    sums = (f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(tree)}\n" for path in files)
    (folder / "md5sums").write_text("".join(sums), encoding="utf-8")


def depends(files: list[Path]) -> list[str]:
    """The packages that the program needs: glibc of the newest symbol that it uses, and Qt's libraries."""
    versions = {(2, 28)}
    for path in files:
        if ".so" in path.name or path.name == NAME:
            read = subprocess.run(["objdump", "-T", path], capture_output=True, text=True, check=False).stdout
            versions |= {(int(a), int(b)) for a, b in re.findall(r"GLIBC_(\d+)\.(\d+)", read)}
    newest = ".".join(map(str, max(versions)))
    needs = [" | ".join(need.packages) for need in SYSTEM_NEEDS if need.purpose in ("window", "screen")]
    return [f"libc6 (>= {newest})", *dict.fromkeys(needs)]
