"""Looks at the pinned packages on request: known vulnerabilities, licences, and what engine packs say of themselves.

``packaging/ace check --audit [--pack FILE]``. Vulnerabilities come from the database that pip-audit asks, over the
network. Where that cannot be reached nothing is known, which is said, and is no success.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.metadata import PackageMetadata, distributions
from pathlib import Path
from typing import Any

sys.path.insert(1, str(Path(__file__).resolve().parent / "installers"))

from contents import SAID_ELSEWHERE, licence_problems
from inside import problems_of
from steps import PINS, TOOLS, BuildError, make_environment

UNREACHABLE = re.compile(
    r"ConnectionError|NameResolution|name resolution|Max retries|timed? ?out|unreachable|refused|ProxyError|SSLError|"
    r"Connecting to|ServiceError|HTTP(S)?ConnectionPool|Service unavailable|\b(403|407|429|50[0-4])\b",
    re.IGNORECASE,
)
_LIMIT_S = 600
FOR_TESTS_ALONE = {"asyncssh"}
"""Packages that the tests use, as a pretended host, and that nothing ships: any licence to use them will do."""


class Outcome(StrEnum):
    """How a part of the audit ended."""

    PASSED = "passed"
    FAILED = "FAILED"
    UNKNOWN = "UNKNOWN"
    """Nothing could be found out; whether there is a problem is not known."""


@dataclass(frozen=True)
class Part:
    """One part of the audit, and what it found, a line each."""

    name: str
    outcome: Outcome
    lines: list[str] = field(default_factory=list)


def pins() -> dict[str, str]:
    """Name -> version of everything that the scripts install: the program, its tests, and what builds installers."""
    lines = [line for file in (PINS, TOOLS) for line in file.read_text("utf-8").splitlines()]
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def licences() -> Part:
    """Whether the pinned packages that are installed here name licences under which they may be shipped."""
    wanted, seen, components = {_plain(name) for name in pins()}, set(), []
    for one in distributions():
        name = _plain(one.metadata["Name"])
        if name in wanted and name not in seen:
            seen.add(name)
            components.append({"name": name, "version": one.version, "licenses": _licences_of(name, one.metadata)})
    problems = licence_problems([one for one in components if one["name"] not in FOR_TESTS_ALONE])
    unshipped = licence_problems([one for one in components if one["name"] in FOR_TESTS_ALONE])
    absent = sorted(wanted - seen)
    lines = [*problems, *(f"{one}; the tests alone use it, and nothing ships it" for one in unshipped)]
    lines += [f"{len(seen)} packages were looked at; {len(absent)} are not installed here and were not"]
    return Part("licences", Outcome.FAILED if problems else Outcome.PASSED, lines)


def _licences_of(name: str, metadata: PackageMetadata) -> list[dict[str, Any]]:
    """As a component of an SBOM has them: an SPDX expression, else the classifiers, else the plain field."""
    expression = SAID_ELSEWHERE.get(name) or metadata.get("License-Expression")
    if expression:
        return [{"expression": expression}]
    named = [one for one in metadata.get_all("Classifier", []) if one.startswith("License :: OSI Approved :: ")]
    plain = str(metadata.get("License") or "").strip().partition("\n")[0]
    return [{"license": {"name": one}} for one in named or ([plain] if plain else [])]


def vulnerabilities(work: Path) -> Part:
    """What the database of pip-audit knows of the pinned versions."""
    name = "vulnerabilities"
    try:
        python = make_environment(work / "audit", "pip-audit")
    except BuildError as error:
        lines = ["pip-audit could not be installed, so nothing is known of vulnerabilities", *str(error).splitlines()]
        return Part(name, Outcome.UNKNOWN, lines)
    with tempfile.TemporaryDirectory() as folder:
        listed = Path(folder, "pins.txt")
        listed.write_text("".join(f"{one}=={version}\n" for one, version in sorted(pins().items())), encoding="utf-8")
        command = [str(python), "-I", "-m", "pip_audit", "--requirement", str(listed), "--no-deps", "--disable-pip"]
        command += ["--format", "json", "--progress-spinner", "off", "--timeout", "20"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_LIMIT_S)
        except subprocess.TimeoutExpired:
            return Part(name, Outcome.UNKNOWN, [f"the database did not answer within {_LIMIT_S} s: nothing is known"])
    return read_answer(done.stdout, done.stderr)


def read_answer(printed: str, said: str) -> Part:
    """What an answer of pip-audit means; one that holds no result means that nothing is known."""
    name = "vulnerabilities"
    try:
        found = json.loads(printed)["dependencies"]
    except (ValueError, KeyError, TypeError):
        last = [line for line in said.strip().splitlines() if line][-1:] or ["it printed nothing"]
        is_network = UNREACHABLE.search(said) is not None
        why = "no database of vulnerabilities could be reached" if is_network else "pip-audit gave no result"
        return Part(name, Outcome.UNKNOWN, [f"{why}, so nothing is known: {last[0][:300]}"])
    lines = [
        f"{one['name']} {one.get('version', '')}: {each['id']}, mended in {', '.join(each['fix_versions']) or 'none'}"
        for one in found
        for each in one.get("vulns", [])
    ]
    skipped = [one for one in found if one.get("skip_reason")]
    outcome = Outcome.FAILED if lines else Outcome.PASSED if found and not skipped else Outcome.UNKNOWN
    lines.append(f"{len(found) - len(skipped)} of {len(found)} packages were looked up")
    if skipped:
        names = ", ".join(one["name"] for one in skipped[:5])
        reason = str(skipped[0]["skip_reason"])[:200]
        lines.append(f"nothing is known of the others ({names}{', ...' if skipped[5:] else ''}): {reason}")
    return Part(name, outcome, lines)


def pack(path: Path) -> Part:
    """Whether an engine pack holds what its SBOM says, and nothing else."""
    try:
        problems = problems_of(path)
    except (OSError, ValueError, KeyError, tarfile.TarError) as error:
        return Part(f"contents of {path.name}", Outcome.UNKNOWN, [f"it cannot be read: {error}"])
    return Part(f"contents of {path.name}", Outcome.FAILED if problems else Outcome.PASSED, problems)


def audit(packs: Sequence[Path]) -> int:
    """Print what every part found. 0 only if all was looked at and nothing was found."""
    with tempfile.TemporaryDirectory() as work:  # not in the checkout, whose files the tests read
        return tell([licences(), *map(pack, packs), vulnerabilities(Path(work))])


def tell(parts: Iterable[Part]) -> int:
    """Print the parts; 0 only if all have passed."""
    parts = list(parts)
    for part in parts:
        print(f"== {part.name}")
        for line in part.lines:
            print(f"   {line}")
    print("== summary of the audit")
    for part in parts:
        print(f"{part.outcome:<7}  {part.name}")
    return 0 if all(part.outcome is Outcome.PASSED for part in parts) else 1


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
