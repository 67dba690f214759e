"""The corpus of machine faults: one table per part of the machine, each case with its fault and its expected outcome.

To add a case, append a ``[[case]]`` with ``name``, ``fault`` and what `FaultCase` has of outcomes to a table in
``faults/``. ``fault`` is Python that runs in the process of the command before it begins (`tests.corpus.fault_server`
has the helpers); ``job.at(PHASE, action)`` injects while it runs. A fault that another test injects is an
``[[elsewhere]]`` with its ``tested_by``.
"""

import json
import os
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ace_studio.records.errors import visible
from tests.corpus.case import HEAD, QUICK
from tests.forked_engines import ForkServer

FOLDER = Path(__file__).parent / "faults"
TABLES = sorted(path.stem for path in FOLDER.glob("*.toml"))
RECIPE = """format = 1
[model]
source = "model.py"
entry = "Net"
[inputs]
tracing = "inputs"
"""


@dataclass(frozen=True, kw_only=True)
class FaultCase:
    """One fault, and how a command that meets it must end."""

    name: str
    fault: str = ""
    """Code that makes it, in the process of the command."""
    command: tuple[str, ...] = ("trace", "recipe.toml", "--trust")
    beside: tuple[str, ...] = ()
    """Words of a second command, which runs at the same time."""
    recipe: str = ""
    """Tables after those of `RECIPE`; the plan is fp32 unless there is one."""
    code_before: str = ""
    """Code that is added to the model file."""
    rounds: int = 2
    """Of the measurement."""
    env: dict[str, str] = field(default_factory=dict)
    """Variables; an empty one is taken away. ``HERE`` stands for the folder of the case."""
    exit: int = 0
    error: str = ""
    """`ErrorCode` of the problem, with ``--json``; empty if the command succeeds."""
    words: tuple[str, ...] = ()
    """What the output must say."""
    hidden: tuple[str, ...] = ()
    """What it may not say."""
    left: tuple[str, ...] = ()
    """Files, or patterns of them, that must be there afterwards and hold something."""
    gone: tuple[str, ...] = ()
    """Files, or patterns, that may not be there."""
    fresh: bool = False
    """Whether the command starts in a new interpreter, which takes seconds; ``job`` does nothing there."""
    slow: bool = False
    full: bool = False
    """Whether it runs with ``--full`` only: another case finds the same faults."""


@dataclass(frozen=True, kw_only=True)
class Elsewhere:
    """A fault that another test injects."""

    name: str
    tested_by: str
    """``file::function``, or the start of the function's name."""


@dataclass
class Ended:
    """How the commands of a case ended."""

    codes: list[int | None]
    orphans: int
    seconds: float
    out: str = ""
    output: str = ""
    """Everything that was printed, without the details of problems in JSON: a traceback belongs there."""


def cases(table: str) -> list[FaultCase]:
    """The cases of a table."""
    return [FaultCase(**_plain(row)) for row in _rows(table, "case")]


def elsewhere() -> list[Elsewhere]:
    """The faults that other tests inject."""
    return [Elsewhere(**row) for table in TABLES for row in _rows(table, "elsewhere")]


def _rows(table: str, kind: str) -> list[dict[str, Any]]:
    return tomllib.loads((FOLDER / f"{table}.toml").read_text("utf-8")).get(kind, [])


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}


class FaultServer:
    """The process that runs the commands (`tests.corpus.fault_server`)."""

    def __init__(self, fork_server: ForkServer) -> None:
        (theirs, orders), (answers, to_answers) = os.pipe(), os.pipe()
        self._process = fork_server.fork("tests.corpus.fault_server:main", descriptors={0: theirs, 1: to_answers, 2: 2})
        os.close(theirs)
        os.close(to_answers)
        self._pipes = os.fdopen(orders, "w"), os.fdopen(answers, "r")

    def run(self, case: FaultCase, here: Path) -> Ended:
        """Run the commands of a case in its folder."""
        for name in ("home", "tmp"):
            (here / name).mkdir()
        (here / "model.py").write_text(HEAD + case.code_before, "utf-8")
        plan = "" if "[plan]" in case.recipe else '[plan]\ndefault = "fp32"\n'
        quick = QUICK.partition("[targets]")[0] if "[targets]" in case.recipe else QUICK
        quick = quick.replace("rounds = 2", f"rounds = {case.rounds}")
        (here / "recipe.toml").write_text(RECIPE + quick + plan + case.recipe, "utf-8")
        words = [list(case.command)] + ([list(case.beside)] if case.beside else [])
        order = {
            "here": str(here),
            "fault": case.fault,
            "commands": words,
            "environment": _environment(case, here),
            "fresh": case.fresh,
        }
        ended = self._ask(order)
        ended.out, errors = ((here / name).read_text("utf-8", "replace") for name in ("stdout", "stderr"))
        ended.output = errors + ended.out
        if ended.out.startswith("{"):
            for one in json.loads(ended.out).get("errors", ()):
                ended.output = ended.output.replace(visible(json.dumps(one["details"], ensure_ascii=False)), '""')
        return ended

    def _ask(self, order: dict[str, Any]) -> Ended:
        orders, answers = self._pipes
        print(json.dumps(order), file=orders, flush=True)
        return Ended(**json.loads(answers.readline()))

    def close(self) -> None:
        """End the process."""
        for pipe in self._pipes:
            pipe.close()
        self._process.wait()


def _environment(case: FaultCase, here: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "TORCHINDUCTOR", "ACE_"))}
    made = kept | {"HOME": str(here / "home"), "TMPDIR": str(here / "tmp"), "ACE_STUDIO_CACHE": "off"} | case.env
    return {name: value.replace("HERE", str(here)) for name, value in made.items() if value}
