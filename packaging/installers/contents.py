"""What an installer holds, as a CycloneDX document, and whether the licences of all of it permit shipping it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from steps import HERE, BuildError, make_environment, run, say

DOCUMENT = "contents.cdx.json"
LICENCES = "licences"
"""Folder of the texts, ``NAME.txt`` each; the About dialog reads both (ace_studio/gui/dialogs/about.py)."""
ALLOWED = re.compile(
    r"MIT|MIT-0|MIT-CMU|HPND|X11|ISC|0BSD|BSD-[234]-Clause|BSD-Source-Code|BSL-1\.0|Zlib|Libpng|FTL|AFL-2\.1|blessing|"
    r"bzip2-1\.0\.6|Unlicense|CC0-1\.0|PSF-2\.0|Python-2\.0|CNRI-Python|Apache-2\.0( WITH LLVM-exception)?|MPL-2\.0|"
    r"libselinux-1\.0|LGPL-[23]\.[01]-(only|or-later)|GPL-2\.0-or-later WITH Bootloader-exception|"
    r"GPL-3\.0-or-later WITH GCC-exception-3\.1|"
    r"License :: OSI Approved :: (MIT|BSD|Apache Software|Python Software Foundation|Mozilla Public) License.*"
)
"""Licences under which a program that is itself under Apache-2.0 may ship a package unchanged, as separate files."""
LIBRARIES = {
    r"libx11-.*|libxau6|libxdmcp6|libxext6|libxrender1|libxcb-.*|libxkbcommon.*|libtinfo6|libncurses.*": "X11",
    r"libbrotli1|libexpat1|libffi8|libfontconfig1|libcom-err2|libgssapi-krb5-2|libk5crypto3|libkrb5.*|libtirpc3": "MIT",
    r"libbsd0|libmd0|libcap2|libuuid1|libpcre2-8-0|libzstd1|libmpdec3": "BSD-3-Clause",
    r"libblkid1|libmount1|libkeyutils1|libgcrypt20|libgpg-error0|libglib2.0-0|libsystemd0": "LGPL-2.1-or-later",
    r"libcrypt1|libnsl2": "LGPL-2.1-or-later",
    r"libgcc-s1|libstdc\+\+6|libgomp1|libgfortran5|libquadmath0": "GPL-3.0-or-later WITH GCC-exception-3.1",
    r"libreadline8|libgdbm.*|libdb5.3": "GPL-3.0-or-later",
    r"libdbus-1-3": "AFL-2.1 OR GPL-2.0-or-later",
    r"libssl3": "Apache-2.0",
    r"libbz2-1.0": "bzip2-1.0.6",
    r"libfreetype6": "FTL",
    r"libpng16-16": "Libpng",
    r"libsqlite3-0": "blessing",
    r"liblz4-1": "BSD-2-Clause",
    r"liblzma5": "0BSD",
    r"libselinux1": "libselinux-1.0",
    r"zlib1g": "Zlib",
}
"""Package of Debian -> licence of the library in it, from its copyright file (which also names those of its tools)."""
SAID_ELSEWHERE = {
    "dask-jobqueue": "BSD-3-Clause",
    "partd": "BSD-3-Clause",
    "protobuf": "BSD-3-Clause",
    "pyinstaller": "GPL-2.0-or-later WITH Bootloader-exception",
    "shellingham": "ISC",
    "torchao": "BSD-3-Clause",
    "torchvision": "BSD-3-Clause",
    "transformers": "Apache-2.0",
}
"""Package -> licence, where its metadata names none or a wrong one; from the licence file in its wheel."""
NOT_SHIPPED = {"altgraph", "packaging", "pip", "pyinstaller-hooks-contrib", "setuptools"}
"""What is in the environment of the frozen window only to build it."""


def write_contents(python: Path, root: Path, *, leave_out: frozenset[str] = frozenset()) -> Path:
    """List the packages of an environment and the system's libraries in a folder, and check their licences.

    Args:
        python: The interpreter whose packages are shipped.
        root: The folder that is shipped. Gets ``contents.cdx.json``, and below ``licences`` the text of each licence.
        leave_out: Packages of the environment that are not shipped.

    Returns: the path of the document.
    Raises: BuildError if a package has no licence or one that does not permit this.
    """
    say("listing the contents and their licences")
    tools = make_environment(root.parent / "tools", "cyclonedx-bom")
    path = root / DOCUMENT
    run([tools, "-m", "cyclonedx_py", "environment", "--output-reproducible", "--output-file", path, python])
    document = json.loads(path.read_text("utf-8"))
    components = [one for one in document["components"] if one["name"] not in leave_out]
    for one in components:
        if one["name"] in SAID_ELSEWHERE:
            one["licenses"] = [{"expression": SAID_ELSEWHERE[one["name"]]}]
    _write_texts(python, root / LICENCES, components)
    components += [_python(python, root / LICENCES), *_libraries(root)]
    document["components"] = components
    known = {one.get("bom-ref") for one in components}
    document["dependencies"] = [one for one in document.get("dependencies", []) if one["ref"] in known]
    path.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    if problems := licence_problems(components):
        raise BuildError("; ".join(problems), "leave the package out, or read its licence and name it in contents.py")
    return path


def licence_problems(components: list[dict[str, Any]]) -> list[str]:
    """What must not be shipped, in words: packages without a licence, or with one that is not allowed."""
    problems = []
    for one in components:
        licences = [licence_name(each) for each in one.get("licenses", [])]
        named = [each for each in licences if each != "License :: DFSG approved"]  # says nothing about the terms
        if not named:
            problems.append(f"{one['name']} {one.get('version', '')} names no licence")
        problems += [f"{one['name']} is under {each}" for each in named if not is_allowed(each)]
    return problems


def is_allowed(expression: str) -> bool:
    """Whether an SPDX expression, or the name of a licence, can be satisfied with the allowed licences."""
    plain = expression.replace("(", " ").replace(")", " ")
    return any(
        all(ALLOWED.fullmatch(" ".join(name.split())) for name in re.split(r"\bAND\b", choice))
        for choice in re.split(r"\bOR\b", plain)
    )


def licence_name(each: Mapping[str, Any]) -> str:
    """The name in one entry of a component's licences; empty if it names none."""
    inner = each.get("license", {})
    return str(each.get("expression") or inner.get("id") or inner.get("name") or "")


LGPL = (HERE / "texts" / "LGPL-3.0.txt", HERE / "texts" / "GPL-3.0.txt")
"""The texts of the LGPL, which is written as an addition to the GPL; both have to come with what is under it."""
READ_TEXTS = r"""
import importlib.metadata, json, re, sys
said = {}
for one in importlib.metadata.distributions():
    files = [f for f in one.files or () if re.search(r"licen[cs]e|copying|notice", f.name, re.I) and f.suffix != ".py"]
    pages = [*one.metadata.get_all("Project-URL", []), *one.metadata.get_all("Home-page", [])]
    texts = [f.locate().read_text("utf-8", "replace") for f in sorted(files) if ".dist-info" in str(f)]
    said[one.metadata["Name"]] = [texts, pages]
print(json.dumps(said))
"""
"""Run by a Python: the texts of the licences of its packages, and where else they are, by name."""


def _write_texts(python: Path, folder: Path, components: list[dict[str, Any]]) -> None:
    folder.mkdir(exist_ok=True)
    said = json.loads(run([python, "-I", "-c", READ_TEXTS]).splitlines()[-1])
    for one in components:
        texts, pages = said.get(one["name"], ([], []))
        if not texts and any("LGPL-3.0" in licence_name(each) for each in one.get("licenses", [])):
            texts = [path.read_text("utf-8") for path in LGPL]  # Qt's packages bring none
        text = "\n\n".join(texts) or "\n".join(["The package brings no text of its licence.", *pages])
        (folder / f"{one['name']}.txt").write_text(text, encoding="utf-8")


def _python(python: Path, folder: Path) -> dict[str, Any]:
    code = "import platform, sysconfig; print(platform.python_version()); print(sysconfig.get_path('stdlib'))"
    printed, library = run([python, "-I", "-c", code]).strip().splitlines()
    short = ".".join(printed.split(".")[:2])
    places = (Path(library) / "LICENSE.txt", Path(f"/usr/share/doc/python{short}/copyright"))
    if (text := next((path for path in places if path.exists()), None)) is None:
        raise BuildError("this Python brings no text of its licence", "install its documentation")
    shutil.copyfile(text, folder / "Python.txt")
    return {"type": "application", "name": "Python", "version": printed, "licenses": [{"license": {"id": "PSF-2.0"}}]}


def _libraries(root: Path) -> Iterator[dict[str, Any]]:
    """The shared libraries that were copied from packages of this Debian; their copyright files go to ``licences``."""
    if shutil.which("dpkg-query") is None:
        return
    owners: dict[str, str] = {}
    for file in sorted(root.rglob("lib*.so*")):
        if "site-packages" in file.parts or "PySide6" in file.parts or file.name in owners:
            continue
        if file.name.startswith("libpython"):
            continue  # a part of Python, whoever built it
        words = ["dpkg-query", "--search", f"*/{file.name}"]
        found = subprocess.run(words, capture_output=True, text=True, check=False).stdout
        if owner := re.match(r"([^:,]+)(:\S+)?: /(usr/)?lib", found):
            owners[file.name] = owner[1]
    for name in sorted(set(owners.values())):
        version = run(["dpkg-query", "--show", "--showformat=${Version}\n", name]).split()[0]
        copyright_file = Path("/usr/share/doc") / name / "copyright"
        if not copyright_file.exists():
            raise BuildError(f"{copyright_file} is not there", "install the documentation of the package")
        shutil.copyfile(copyright_file, root / LICENCES / f"{name}.txt")
        plain = name.removesuffix("t64")  # rebuilt with times of 64 bits
        licence = next((one for pattern, one in LIBRARIES.items() if re.fullmatch(pattern, plain)), "")
        yield {
            "type": "library", "name": name, "version": version, "purl": f"pkg:deb/debian/{name}@{version}",
            "licenses": [{"expression": licence}] if licence else [],
        }  # fmt: skip
