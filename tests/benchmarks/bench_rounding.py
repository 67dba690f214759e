"""What learned rounding gives to 4-bit weights, beside GPTQ and AWQ here and scale estimation of NNCF.

    python -m tests.benchmarks.bench_rounding --out FOLDER [--models FOLDER] [--only NAME ...] [--seconds 600]

Every op with weights is at int4-weight, groups of 32, but the last linear layer, which has 8 bits, as NNCF does it by
itself. Ours is built for ONNX Runtime with one improvement at a time, and NNCF compresses the same model for OpenVINO
with and without scale estimation, as its page on weight compression shows it. The decoder is calibrated with 64 calls
of one token each; the six of its row say too little about the 768 inputs of a layer. All are judged by SQNR on inputs
that nothing was calibrated with, and by the model's own metric where it has one. A claim per model: learned rounding
has at least 2 dB more than GPTQ and than AWQ, and more than scale estimation.
FOLDER gets ``figures.json`` and ``table.md``; the exit status is 1 if a claim does not hold.
"""

import argparse
import functools
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import torch

import ace_studio
from tests.benchmarks.figures import Figure, conclude
from tests.benchmarks.peers.found import ToolFound
from tests.benchmarks.peers.one_row import judge
from tests.benchmarks.peers.opening import Left, open_left
from tests.benchmarks.peers.row import GIVEN, MADE, DecoderStep, PeerRow, decoder_calls, make_row
from tests.benchmarks.peers.tools import Build, largest, nncf_weights

OURS = {"plain": (), "gptq": ("gptq",), "awq": ("awq",), "learned-rounding": ("learned-rounding",)}
NNCF: dict[str, Build] = {
    "NNCF int4": functools.partial(nncf_weights, mode="INT4_SYM", group_size=32),
    "NNCF int4 with scale estimation": functools.partial(
        nncf_weights, mode="INT4_SYM", group_size=32, is_estimated=True
    ),
}
LEAST_GAIN_DB = 2.0
LEARNED = "learned-rounding"


def rounding_row(name: str, models: Path | None) -> PeerRow:
    """The peers' row of a name, with enough calibration data to learn from."""
    row = make_row(name, models)
    if isinstance(row.module, DecoderStep):
        row = replace(row, calibration=decoder_calls(row.module, 64, 2))
    return row


def build_ours(row: PeerRow, methods: tuple[str, ...], folder: Path, *, seconds: float) -> Left:
    """One plan with these improvements, nothing kept high."""
    last = [name for name, one in row.module.named_modules() if isinstance(one, torch.nn.Linear)][-1]
    result = ace_studio.compile(
        row.module, tracing_inputs=list(row.tracing or row.held_out), calibration_inputs=list(row.calibration),
        default="int4-weight", rules=[(f"module:{last}", "int8-weight")], target="onnxruntime",
        improve=methods, improve_by_search=False, improve_max_seconds=seconds, rounds=3, profile=False, out=folder,
    )  # fmt: skip
    (run,) = (one for one in result.report.runs if one.artifact)
    return Left(kind=run.target, path=str(folder / str(run.artifact)))


def measure(row: PeerRow, *, seconds: float) -> dict[str, tuple[ToolFound, float]]:
    """Fidelity and seconds of every way; a way that fails has its error."""
    builds = {
        name: lambda _, folder, methods=methods: build_ours(row, methods, folder, seconds=seconds)
        for name, methods in OURS.items()
    } | NNCF
    found = {}
    for name, build in builds.items():
        tool, began_s = ToolFound(name=name), time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            try:
                left = build(row, Path(folder))
                took_s = time.perf_counter() - began_s
                judge(row, open_left(left, largest(row)), tool)
            except Exception as error:  # noqa: BLE001 - whatever a tool raises is its result
                tool.error, took_s = f"{type(error).__name__}: {error}"[:200], time.perf_counter() - began_s
        found[name] = (tool, took_s)
        print(f"{row.name} {name}: {tool.sqnr_db} dB, {tool.metric}, {took_s:.0f} s {tool.error}", flush=True)
    return found


def figures_of(name: str, found: dict[str, tuple[ToolFound, float]]) -> list[Figure]:
    """How much learned rounding is ahead of each other way, in dB; lost if it is less than claimed."""
    learned = found[LEARNED][0].sqnr_db
    figures = []
    for other, (tool, _) in found.items():
        if other in {LEARNED, "plain", "NNCF int4"} or tool.sqnr_db is None:
            continue
        gain = (learned or 0.0) - tool.sqnr_db
        least = LEAST_GAIN_DB if other in OURS else 0.0
        claim = f"; at least {least:g} dB are claimed" if least else ""
        way = f"{other.upper()} in ACE Studio" if other in OURS else other
        what = f"learned rounding of int4 weights gives {name} {gain:.3g} dB more SQNR than {way}{claim}"
        figures.append(
            Figure(id=f"rounding.{name}.{other}", what=what, value=gain, unit="dB", peer=other, lost=gain < least)
        )
    return figures


def table(rows: dict[str, dict[str, tuple[ToolFound, float]]]) -> str:
    """Everything as markdown."""
    lines = ["| model | way | SQNR dB | metric | seconds | |", "|---|---|---|---|---|---|"]
    for name, found in rows.items():
        for way, (tool, took_s) in found.items():
            metric = "" if tool.metric is None else f"{tool.metric:.4f}"
            lines.append(f"| {name} | {way} | {tool.sqnr_db or ''} | {metric} | {took_s:.0f} | {tool.error} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Measure every model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--models", type=Path, help="folder with wordsim.py, which is MiniLM with trained weights")
    parser.add_argument("--only", nargs="+", choices=[*MADE, *GIVEN], default=[])
    parser.add_argument("--seconds", type=float, default=600.0, help="the most that learned rounding may learn")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(2)
    names = options.only or [*(["wordsim"] if options.models else []), "bert_base", "decoder_step"]
    rows = {name: measure(rounding_row(name, options.models), seconds=options.seconds) for name in names}
    (options.out / "table.md").write_text(table(rows), encoding="utf-8")
    return conclude(options.out, [one for name, found in rows.items() for one in figures_of(name, found)])


if __name__ == "__main__":
    sys.exit(main())
