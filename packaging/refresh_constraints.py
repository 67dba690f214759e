"""Write the versions installed in this interpreter to ``constraints.txt``, keeping its comment lines.

Run it with ``.venv/bin/python`` after the tests have passed there. Only names and versions are written: no index, no
folder, no hash, and no local part of a version, so that the file means the same everywhere. ``--hashes`` then asks pip
which files it would install for all extras here, and writes their SHA-256 to ``hashes.txt``, for this system alone.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from importlib.metadata import distributions
from pathlib import Path

import locked

CONSTRAINTS = Path(__file__).resolve().with_name("constraints.txt")
NOT_PINNED = frozenset({"pip", "wheel", "ace-studio", "hatchling", "editables", "trove-classifiers"})
"""The project itself, and what only builds it."""


def normalized(name: str) -> str:
    """The normalized name of a distribution (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def installed_pins() -> list[str]:
    """``name==version`` of every distribution, sorted, without local parts such as ``+cpu``."""
    versions = {normalized(found.metadata["Name"]): found.version.partition("+")[0] for found in distributions()}
    return [f"{name}=={version}" for name, version in sorted(versions.items()) if name not in NOT_PINNED]


def write_hashes() -> None:
    """Write the hashes of the files that pip would install here, as it reports them; nothing is installed."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = [sys.executable, "-I", "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"]
        command += ["--no-input", "--report", str(report), "--constraint", str(CONSTRAINTS)]
        subprocess.run([*command, f"{CONSTRAINTS.parents[1]}[all,test]"], check=True)
        count = locked.write_lock(CONSTRAINTS.with_name("hashes.txt"), locked.read_report(report), locked.system())
    print(f"{count} hashes for {locked.system()} in hashes.txt")


def main() -> None:
    """Replace the pins below the comment lines, or the hashes."""
    if "--hashes" in sys.argv[1:]:
        write_hashes()
        return
    lines = CONSTRAINTS.read_text(encoding="utf-8").splitlines()
    head = [line for line in lines if line.startswith("#")]
    pins = installed_pins()
    CONSTRAINTS.write_text("\n".join([*head, *pins]) + "\n", encoding="utf-8")
    print(f"{len(pins)} versions pinned in {CONSTRAINTS.name}")


if __name__ == "__main__":
    main()
