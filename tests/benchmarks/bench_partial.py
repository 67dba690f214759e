"""Networks that others cannot compile whole: compiled on two targets, compared with eager, timed against eager.

    python -m tests.benchmarks.bench_partial --out FOLDER [--only NAME ...] [--targets onnxruntime openvino]

Detection, early exit, a loop over experts, a greedy ``while``, LSTM and Transformer, with the sizes free that change in
practice. Every case runs in a process of its own. FOLDER gets a JSON file per case, ``table.md`` and ``summary.json``.
The exit status is 1 unless every case is captured, runs verified on two targets, equals eager at every example and at
sizes that nobody gave, and is not slower than eager on either.
"""

import argparse
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch import Tensor, nn

import ace_studio
from ace_studio.engine.capture.eager import EagerRun
from ace_studio.engine.capture.verify import difference
from ace_studio.engine.flow import Example
from ace_studio.records.errors import AceError
from ace_studio.records.results import Result, TargetRun
from tests.benchmarks.children import run_child
from tests.benchmarks.zoo import ROWS, Row
from tests.benchmarks.zoo.awkward_rows import EarlyExit, ExpertLoop, GreedyWhile, pictures
from tests.benchmarks.zoo.row import features, tokens
from tests.benchmarks.zoo.torch_nn_rows import LastStep

TARGETS = ("onnxruntime", "openvino")
ENOUGH_TARGETS = 2


def _two_sequences(batch: int, length: int) -> tuple[Tensor, Tensor]:
    return features(batch, length, 64)[0], features(batch, length // 2, 64)[0]


def _transformer() -> nn.Module:
    return nn.Transformer(64, 4, 2, 2, dim_feedforward=256, batch_first=True)


def _lstm() -> nn.Module:
    return LastStep(nn.LSTM(64, 128, 2, batch_first=True), 128)


CASES: dict[str, Row] = {
    row.name: row
    for row in (
        Row("lstm", "wide", _lstm, features, ((4, 48, 64), (8, 64, 64)), (6, 56, 64)),
        Row("transformer", "wide", _transformer, _two_sequences, ((4, 48), (8, 64)), (6, 56)),
        Row("early_exit", "wide", lambda: EarlyExit(48, 6), pictures, ((1, 64, 48), (4, 48, 64)), (2, 56, 64)),
        Row("expert_loop", "wide", lambda: ExpertLoop(128), features, ((4, 64, 128), (6, 96, 128)), (5, 80, 128)),
        Row("greedy_while", "wide", lambda: GreedyWhile(128), lambda *sizes: (tokens(*sizes),), ((2, 16), (4, 24)),
            (3, 20)),
        ROWS["ssdlite320"],
        ROWS["fasterrcnn_mobilenet"],
        ROWS["retinanet_resnet50"],
    )
}  # fmt: skip


class TargetFound(msgspec.Struct, kw_only=True):
    """One target on one case."""

    target: str
    is_verified: bool = False
    speedup: float | None = None
    speedup_low: float | None = None
    speedup_high: float | None = None
    unequal: str = ""
    """How it differs from eager on an example or at unseen sizes; empty if nowhere."""
    error: str = ""

    @property
    def is_good(self) -> bool:
        """Verified, equal, and not slower than eager beyond the noise."""
        return self.is_verified and not self.unequal and (self.speedup_high or 0.0) >= 1.0


class CaseFound(msgspec.Struct, kw_only=True):
    """Everything about one case."""

    name: str
    rung: str = ""
    subgraphs: int = 0
    captured_subgraphs: int = 0
    ops: int = 0
    ops_left_eager: int = 0
    breaks: list[str] = []
    targets: list[TargetFound] = []
    warnings: list[str] = []
    error: str = ""

    @property
    def is_good(self) -> bool:
        """Good on two targets."""
        return sum(one.is_good for one in self.targets) >= ENOUGH_TARGETS


def measure(row: Row, targets: Sequence[str], note: Callable[[CaseFound], None]) -> None:
    """Compile one case for every target, one after the other; ``note`` is called after each."""
    found = CaseFound(name=row.name)
    module = row.module()
    for target in targets:
        with tempfile.TemporaryDirectory() as folder:
            found.targets.append(_on_target(row, module, target, found, Path(folder)))
        note(found)


def _on_target(row: Row, module: nn.Module, target: str, found: CaseFound, folder: Path) -> TargetFound:
    try:
        result = ace_studio.compile(
            module, tracing_inputs=row.examples(), target=[target], default="fp32", out=folder, rounds=20
        )
    except AceError as error:
        return TargetFound(target=target, error=f"{error.problem.what}; {error.problem.why}"[:400])
    _note_capture(found, result.report)
    run = next(one for one in result.report.runs if one.target == target)
    one = _target_found(run)
    if not one.error:
        one.unequal = _unequal(row, module, result.module)
    return one


def _note_capture(found: CaseFound, report: Result) -> None:
    capture = report.capture
    assert capture is not None
    found.rung, found.ops, found.ops_left_eager = capture.rung, capture.ops, capture.ops_left_eager
    found.subgraphs = len(capture.pieces)
    found.captured_subgraphs = sum(subgraph.error is None for subgraph in capture.pieces)
    found.breaks = [f"{Path(one.file).name}:{one.line} {one.reason}" for one in capture.graph_breaks]
    found.warnings = [f"{one.code}: {one.what}" for one in capture.warnings]


def _target_found(run: TargetRun) -> TargetFound:
    return TargetFound(
        target=run.target,
        is_verified=run.verified,
        speedup=run.speedup,
        speedup_low=run.speedup_low,
        speedup_high=run.speedup_high,
        error=f"{run.error.what}; {run.error.why}"[:400] if run.error else "",
    )


def _unequal(row: Row, module: nn.Module, compiled: nn.Module) -> str:
    eager = EagerRun.of(module)
    calls = {f"example {number}": one for number, one in enumerate(row.examples(), start=1)}
    for label, call in (calls | {"unseen": row.unseen_example()}).items():
        example = Example.of(call)
        try:
            if text := difference(eager.output(example), example.copied().call(compiled)):
                return f"{label}: {text}"
        except Exception as error:  # noqa: BLE001 - a runtime may refuse a size in any way
            return f"{label}: {type(error).__name__}: {str(error)[:200]}"
    return ""


# --- all cases ---


def in_words(found: CaseFound) -> str:
    """One line about a case."""
    capture = f"{found.rung or 'not captured'}, {found.ops} ops"
    if found.subgraphs:
        capture += f", {found.captured_subgraphs} of {found.subgraphs} subgraphs, {len(found.breaks)} breaks, "
        capture += f"{found.ops_left_eager} ops left eager"
    parts = [capture, *(_target_words(one) for one in found.targets)]
    return "; ".join([*parts, found.error.strip().splitlines()[-1]] if found.error else parts)


def _target_words(one: TargetFound) -> str:
    if one.error:
        return f"{one.target}: {one.error}"
    speed = "" if one.speedup is None else f"{one.speedup:.2f} times eager"
    spread = "" if one.speedup_low is None else f" ({one.speedup_low:.2f} to {one.speedup_high or 0:.2f})"
    return f"{one.target}: {speed}{spread}, {'verified' if one.is_verified else 'not verified'}" + (
        f", UNEQUAL {one.unequal}" if one.unequal else ""
    )


def table(found: Sequence[CaseFound]) -> str:
    """Everything as markdown."""
    lines = ["# Compiled in subgraphs", "", "| case | good | what became of it |", "|---|---|---|"]
    lines += [f"| {one.name} | {'yes' if one.is_good else '**no**'} | {in_words(one)} |" for one in found]
    return "\n".join(lines) + "\n"


def run_case(name: str, folder: Path, targets: Sequence[str], limit_s: float) -> CaseFound:
    """Measure one case in a process of its own."""
    file = folder / f"{name}.json"
    file.unlink(missing_ok=True)
    arguments = ["--child", name, "--out", str(folder), "--targets", *targets]
    ending = run_child("tests.benchmarks.bench_partial", arguments, log=folder / f"{name}.log", limit_s=limit_s)
    found = msgspec.json.decode(file.read_bytes(), type=CaseFound) if file.exists() else CaseFound(name=name)
    found.error = found.error or ending
    print(f"{name:22s} {in_words(found)}", flush=True)
    return found


def _be_child(name: str, folder: Path, targets: Sequence[str]) -> int:
    torch.set_num_threads(1)
    file = folder / f"{name}.json"

    def note(found: CaseFound) -> None:
        file.write_bytes(msgspec.json.encode(found))

    try:
        measure(CASES[name], targets, note)
    except Exception:
        text = traceback.format_exc()
        known: Any = msgspec.json.decode(file.read_bytes(), type=CaseFound) if file.exists() else CaseFound(name=name)
        known.error = text[-1500:]
        note(known)
        raise
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--targets", nargs="+", default=list(TARGETS))
    parser.add_argument("--limit", type=float, default=900.0, help="seconds for one case")
    parser.add_argument("--child", choices=list(CASES), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    if options.child:
        return _be_child(options.child, options.out, options.targets)
    found = [run_case(name, options.out, options.targets, options.limit) for name in options.only]
    text = table(found)
    (options.out / "table.md").write_text(text, encoding="utf-8")
    (options.out / "summary.json").write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=2))
    print(text)
    return 0 if all(one.is_good for one in found) else 1


if __name__ == "__main__":
    sys.exit(main())
