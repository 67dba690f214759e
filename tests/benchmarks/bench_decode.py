"""Tokens a second of a decoder step of 116 million weights: our targets beside the peers, each really decoding.

    python -m tests.benchmarks.bench_decode --out FOLDER [--ours onnxruntime:int8-weight ...] [--peers NAME ...]
                                            [--tokens 24] [--repetitions 7]

ONNX Runtime's ``MatMulNBitsQuantizer``, NNCF's ``compress_weights`` and torchao's ``quantize_`` are used as their own
pages say. All are built first, and then decode in turn, repetition by repetition, one thread, from one context of 16
tokens, each token chosen greedily and the cache fed back. FOLDER gets ``decode.json`` and ``decode.md``.
"""

import argparse
import dataclasses
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch import Tensor

import ace_studio
from ace_studio.engine.flow import Example
from ace_studio.engine.profile.decode import StepModel, decode, decode_report
from ace_studio.engine.targets import TARGETS
from ace_studio.records.recipes.recipe import DecodeChoice
from tests.benchmarks.peers.opening import open_left
from tests.benchmarks.peers.row import MADE, Inputs, PeerRow
from tests.benchmarks.peers.tools import FOR_DECODERS, PEERS, largest

FLOAT = "eager fp32"
OURS = tuple(
    f"{target}:{precision}"
    for target in ("onnxruntime", "openvino", "inductor")
    for precision in ("int8-weight", "int4-weight", "int8-dynamic")
)
CHOICE = {"token": "token", "logits": "0", "feed": {"past": "1"}}
Function = Callable[..., Any]


class ToolDecoded(msgspec.Struct, kw_only=True):
    """What came of one tool."""

    name: str
    tokens_per_s: float | None = None
    low: float | None = None
    high: float | None = None
    same_tokens: float | None = None
    build_s: float | None = None
    error: str = ""


def contexts(row: PeerRow) -> list[Inputs]:
    """The context to decode from, and a longer one, so that the length of the cache is free."""
    token, past = row.held_out[0]
    return [(token, past), (token, torch.cat([past, past[..., :8, :]], dim=4))]


def built(name: str, row: PeerRow, folder: Path) -> Function:
    """A tool's function of (token, past)."""
    if name == FLOAT:
        return row.module
    if name in PEERS:
        return open_left(PEERS[name](row, folder), largest(row))
    target, _, precision = name.partition(":")
    result = ace_studio.compile(
        row.module, tracing_inputs=contexts(row), target=target, default=precision, rounds=1, profile=False, out=folder
    )
    (run,) = result.report.runs
    if run.artifact is None or not run.verified:
        raise RuntimeError(run.error.what if run.error else "no verified artifact")
    loaded = TARGETS[target].load(folder / run.artifact, threads=1)
    return lambda token, past: list(loaded(token, past))


def measured(
    functions: dict[str, Function], step: StepModel, *, tokens: int, repetitions: int
) -> dict[str, tuple[list[int], list[float]]]:
    """Tokens and seconds of every tool, in turn; one that fails while decoding is left out, and says so."""
    chosen: dict[str, list[int]] = {}
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for repetition in range(-1, repetitions):  # the first one warms up
        names = list(seconds)
        turn = max(repetition, 0) % len(names)
        for name in names[turn:] + names[:turn]:
            try:
                chosen[name], took_s = decode(functions[name], step, tokens=tokens)
            except Exception as error:  # noqa: BLE001 - a peer may raise anything; the others go on
                print(f"{name} cannot decode: {type(error).__name__}: {error}", flush=True)
                del seconds[name]
                continue
            if repetition >= 0:
                seconds[name].append(took_s)
    return {name: (chosen[name], times) for name, times in seconds.items()}


def table(found: Sequence[ToolDecoded]) -> str:
    """Everything as markdown, the fastest first."""
    lines = ["| tool | tokens/s | slowest - fastest | tokens as fp32 | |", "|---|---|---|---|---|"]
    for one in sorted(found, key=lambda tool: -(tool.tokens_per_s or 0)):
        if one.tokens_per_s is None or one.low is None or one.high is None or one.same_tokens is None:
            lines.append(f"| {one.name} | | | | {one.error[:120]} |")
            continue
        lines.append(
            f"| {one.name} | {one.tokens_per_s:.1f} | {one.low:.1f} - {one.high:.1f} | {one.same_tokens:.0%} | |"
        )
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Build, decode, write; 0 if anything of ours could be measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--ours", nargs="*", default=OURS)
    parser.add_argument("--peers", nargs="*", default=FOR_DECODERS)
    parser.add_argument("--tokens", type=int, default=24)
    parser.add_argument("--repetitions", type=int, default=7)
    asked = parser.parse_args(arguments)
    asked.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    row = MADE["decoder_step"]()
    row = dataclasses.replace(row, tracing=contexts(row))
    functions: dict[str, Function] = {}
    found = {name: ToolDecoded(name=name) for name in (FLOAT, *asked.ours, *asked.peers)}
    for name, one in found.items():
        started = time.monotonic()
        try:
            functions[name] = built(name, row, Path(tempfile.mkdtemp(dir=asked.out)))
        except Exception as error:  # noqa: BLE001 - a tool may raise anything; the others go on
            one.error = f"{type(error).__name__}: {error}"
        one.build_s = round(time.monotonic() - started, 1)
        print(f"{name}: {one.error or 'built'} in {one.build_s} s", flush=True)
    start = Example(args=contexts(row)[0])
    step = StepModel.of(DecodeChoice(**CHOICE), start, ["token", "past"], _as_list(row.module(*start.args)))
    results = measured(functions, step, tokens=asked.tokens, repetitions=asked.repetitions)
    for name, (chosen, seconds) in results.items():
        report = decode_report(chosen, results[FLOAT][0], seconds, 1)
        one = found[name]
        one.tokens_per_s = statistics.median(asked.tokens / took_s for took_s in seconds)
        one.low, one.high, one.same_tokens = report.tokens_per_s_low, report.tokens_per_s_high, report.same_tokens
    (asked.out / "decode.json").write_bytes(msgspec.json.format(msgspec.json.encode(list(found.values()))))
    (asked.out / "decode.md").write_text(table(list(found.values())), encoding="utf-8")
    print(table(list(found.values())))
    return 0 if any(found[name].tokens_per_s for name in asked.ours) else 1


def _as_list(outputs: Any) -> list[Tensor]:
    return list(outputs)


if __name__ == "__main__":
    raise SystemExit(main())
