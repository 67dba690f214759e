"""Saves an artifact and verifies it in a fresh process."""

import json
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import torch
from torch import Tensor

from ace_studio.engine.examples.stored_calls import StoredCall, write_tensors
from ace_studio.engine.flow import Example
from ace_studio.engine.fresh import Preparation, run_fresh
from ace_studio.engine.progress import Reporter
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.recipe import Recipe

MIN_RELOAD_SQNR_DB = 30.0
"""The reloaded artifact must agree with the one in memory at least this well. They hold the same weights; what is
left is another compilation's rounding, which int8 grids can amplify by one step."""
TIME_LIMIT_S = 600.0
LOG_NAME = "log.txt"
"""What the process printed, in the folder of its order."""


class ModelSource(msgspec.Struct, frozen=True, kw_only=True):
    """How a fresh process loads the user's module."""

    recipe: Recipe
    folder: str
    code: tuple[str, ...] | None = None
    """SHA-256 of the code that may run; None for a module that came from the caller's own program."""


class VerifyOrder(msgspec.Struct, frozen=True, kw_only=True):
    """The order to the fresh process, in ``order.json``."""

    target: str
    path: str
    examples: int
    places: tuple[int, ...]
    """Which of the artifact's flat outputs are compared; the others are plain numbers."""
    threads: int
    device: str
    calls: tuple[StoredCall, ...] = ()
    """How the examples are nested, for an artifact that is called like forward; empty for flat ones."""
    model: ModelSource | None = None
    """Source of the module that an artifact in subgraphs needs."""
    sys_path: tuple[str, ...] = ()
    registers: ModelSource | None = None
    """Source of the code that registers custom operators which the artifact calls."""
    imports: tuple[str, ...] = ()
    """Modules whose memory does not count as what the artifact needs."""


def artifact_bytes(path: Path) -> int:
    """Size of an artifact: the file with the weight files of its stem beside it, or the whole folder."""
    if path.is_dir():
        return sum(part.stat().st_size for part in path.rglob("*") if part.is_file())
    beside = [path.with_suffix(".bin"), path.with_name(path.name + ".data")]
    return path.stat().st_size + sum(part.stat().st_size for part in beside if part != path and part.is_file())


def verify_artifact(  # noqa: PLR0913 - a fresh process must be told everything
    target: str,
    path: Path,
    examples: Sequence[Example],
    *,
    expected: Sequence[Sequence[Tensor]],
    places: Sequence[int],
    threads: int,
    device: torch.device,
    reporter: Reporter,
    registers: ModelSource | None = None,
    imports: Sequence[str] = (),
) -> int | None:
    """Open an artifact in a new process, run it on every example and compare with ``expected``.

    Args:
        target: Registry name of the target whose ``load`` opens it.
        path: The artifact.
        examples: Calls to make; only their tensors travel, through a file.
        expected: Flat outputs of the candidate in memory for each example.
        places: Which of the artifact's outputs those are; the others are numbers.
        threads: Threads that the new process may use.
        device: Where the inputs are put before the call.
        reporter: May cancel; the process is then killed.
        registers: The user's model, if the artifact calls operators that its code registers.
        imports: Modules that the target's ``load`` imports, as its row names them.

    Returns: Bytes that the process grew by at most to hold and run it; None where the system does not say.
    Raises: AceError(WRONG_CAPTURE) if it cannot be opened, does not run, or disagrees; details hold what it printed.
    """
    with tempfile.TemporaryDirectory(prefix="ace-verify-") as name:
        folder = Path(name)
        order = VerifyOrder(
            target=target,
            path=str(path.resolve()),
            examples=len(examples),
            places=tuple(places),
            threads=threads,
            device=str(device),
            registers=registers,
            imports=tuple(imports),
        )
        return run_child(folder, order, examples, expected=expected, reporter=reporter)


def run_child(
    folder: Path,
    order: VerifyOrder,
    examples: Sequence[Example],
    *,
    expected: Sequence[Sequence[Tensor]],
    reporter: Reporter,
) -> int | None:
    """Have a new process carry out the order, in ``folder``. Returns and raises as `verify_artifact` does."""
    write_tensors(folder / "inputs.safetensors", [example.tensors() for example in examples])
    write_tensors(folder / "outputs.safetensors", expected)
    (folder / "order.json").write_bytes(msgspec.json.encode(order))
    _carry_out(folder, order, reporter)
    return _read_answer(folder, Path(order.path))


_MODULE, _FUNCTION = "ace_studio.engine.verify_child", "verify"


def prepare_verification(imports: Sequence[str]) -> Preparation:
    """Have the process made ready that will verify artifacts on the CPU; ``imports`` are as in `verify_artifact`."""
    return Preparation(_MODULE, _FUNCTION, imports)


def _carry_out(folder: Path, order: VerifyOrder, reporter: Reporter) -> None:
    run_fresh(
        _MODULE,
        _FUNCTION,
        str(folder),
        log=folder / LOG_NAME,
        check=_checks(reporter),
        forked=order.device == "cpu",
        imports=order.imports,
    )


def _read_answer(folder: Path, artifact: Path) -> int | None:
    answer_path = folder / "answer.json"
    answer = json.loads(answer_path.read_text(encoding="utf-8")) if answer_path.exists() else {}
    problem = answer.get("problem", "the process ended without an answer" if not answer else "")
    if not problem and answer.get("sqnr_db", -1.0) < MIN_RELOAD_SQNR_DB:
        problem = f"its outputs agree with the model in memory to {answer.get('sqnr_db')} dB only"
    if problem:
        raise AceError.of(
            ErrorCode.WRONG_CAPTURE,
            f"The saved artifact {artifact.name} does not hold up in a fresh process",
            why=str(problem),
            remedy="Do not ship it. Try another target, and report the log if it looks like our mistake.",
            where=str(artifact),
            details=(folder / LOG_NAME).read_text(encoding="utf-8", errors="replace")[-20_000:],
        )
    peak_bytes = answer.get("peak_bytes")
    return int(peak_bytes) if peak_bytes is not None else None


def _checks(reporter: Reporter) -> Callable[[], None]:
    """What is asked again and again while the process runs: whether it is cancelled, or takes too long."""
    started = time.monotonic()

    def check() -> None:
        reporter.check()
        if time.monotonic() - started > TIME_LIMIT_S:
            raise AceError.of(
                ErrorCode.TIMEOUT,
                "Verifying the saved artifact took longer than ten minutes",
                remedy="Try a smaller example, or another target.",
            )

    return check
