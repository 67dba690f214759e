"""``auto`` beside NNCF with OpenVINO, ONNX Runtime's own quantizer and torchao, each used as its own pages say.

    python -m tests.benchmarks.bench_peers --out FOLDER [--models FOLDER] [--only NAME ...] [--rounds 30]
        [--processes 5]

On every model the peers are built and timed first; the fastest one's fidelity (its metric where there are real labels,
else its SQNR) is the goal that ``ace_studio.compile`` gets. Every tool leaves a file. Then fresh processes, one after
the other, open all the files, each in another order, and time them in the same rounds, one thread. A ratio is the
median over processes of each one's median over rounds; its interval draws processes, and rounds within them, anew.

FOLDER gets one JSON file per row, ``table.md`` and ``summary.json``. The exit status is 1 unless ours is at least as
fast as the fastest peer, at its fidelity or better, on every row, and faster on one.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tests.benchmarks.children import run_child
from tests.benchmarks.peers.found import OURS, PeerFound, ToolFound
from tests.benchmarks.peers.row import GIVEN, MADE


def run_row(name: str, folder: Path, *, models: Path | None, rounds: int, processes: int, limit_s: float) -> PeerFound:
    """Measure one row in a process of its own."""
    file = folder / f"{name}.json"
    file.unlink(missing_ok=True)
    arguments = [name, "--out", str(file), "--rounds", str(rounds), "--processes", str(processes)]
    arguments += ["--models", str(models)] if models else []
    ending = run_child("tests.benchmarks.peers.one_row", arguments, log=folder / f"{name}.log", limit_s=limit_s)
    found = msgspec.json.decode(file.read_bytes(), type=PeerFound) if file.exists() else PeerFound(name=name)
    if ending:
        found.error = ending
        file.write_bytes(msgspec.json.encode(found))
    return found


def in_words(found: PeerFound) -> str:
    """What came of a row in one line."""
    if found.ratio is None:
        return f"not measured: {found.error or 'nothing'}"
    verdict = "faster than" if found.is_faster else "as fast as" if found.is_as_fast else "SLOWER than"
    faith = "at its fidelity or better" if found.is_as_faithful else "LESS FAITHFUL"
    interval = f"{found.ratio:.2f} ({found.ratio_low:.2f}-{found.ratio_high:.2f})"
    return f"{verdict} {found.fastest_peer}: {interval}, {faith}"


def table(found: Sequence[PeerFound]) -> str:
    """Everything as markdown."""
    held = [one for one in found if one.is_as_fast and one.is_as_faithful]
    lines = [
        "# Auto beside its peers",
        "",
        f"- at least as fast as the fastest peer, at its fidelity or better: {len(held)} of {len(found)} rows",
        f"- clearly faster: {sum(one.is_faster and one.is_as_faithful for one in found)}",
        "",
    ]
    for one in found:
        lines += [
            f"## {one.name}",
            "",
            in_words(one),
            "",
            *_detail(one),
            "| tool | ms | speed-up | SQNR dB | metric | |",
            "|---|---|---|---|---|---|",
        ]
        lines += [_line(tool) for tool in sorted(one.tools, key=lambda tool: tool.ms or 1e9)]
        lines.append("")
    return "\n".join(lines)


def _detail(one: PeerFound) -> list[str]:
    if one.cpu_share is None:
        return []
    ratios = ", ".join(f"{ratio:.3f}" for ratio in one.ratio_per_process)
    return [f"In each process: {ratios}. The core was theirs for {one.cpu_share:.0%} of the time.", ""]


def _line(tool: ToolFound) -> str:
    cells = [
        f"**{tool.name}**" if tool.name == OURS else tool.name,
        "" if tool.ms is None else f"{tool.ms:.3g}",
        "" if tool.speedup is None else f"{tool.speedup:.2f}x",
        "" if tool.sqnr_db is None else f"{tool.sqnr_db:.1f}",
        "" if tool.metric is None else f"{tool.metric:.4f}",
        (tool.what or tool.error).replace("|", "/").replace("\n", " ")[:160],
    ]
    return f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--models", type=Path, help="folder with vad.py, pitch.py and wordsim.py")
    parser.add_argument("--only", nargs="+", choices=[*MADE, *GIVEN], default=[])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--processes", type=int, default=5, help="fresh ones that the verdict is timed in")
    parser.add_argument("--limit", type=float, default=2400.0, help="seconds for one row")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    os.environ["TORCHINDUCTOR_FREEZING"] = "1"  # as PyTorch's pages ask for where they compile quantized models
    names = options.only or [*MADE, *(GIVEN if options.models else ())]
    found = []
    for name in names:
        found.append(
            run_row(
                name,
                options.out,
                models=options.models,
                rounds=options.rounds,
                processes=options.processes,
                limit_s=options.limit,
            )
        )
        print(f"{name:16s} {in_words(found[-1])}", flush=True)
    text = table(found)
    (options.out / "table.md").write_text(text, encoding="utf-8")
    (options.out / "summary.json").write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=2))
    print(text)
    is_held = all(one.is_as_fast and one.is_as_faithful for one in found)
    return 0 if is_held and any(one.is_faster for one in found) else 1


if __name__ == "__main__":
    sys.exit(main())
