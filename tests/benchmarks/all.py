"""Every benchmark, one after the other, and the pages that show their figures.

    python -m tests.benchmarks.all --out DIR [--only NAME ...] [--quick] [--rows ROW ...] [--models FOLDER]
        [--engine FOLDER]
    python -m tests.benchmarks.all --page DIR/figures.json

Each runs in a fresh process with its own folder and log in DIR; one that fails stops nothing, and one that lacks
something (Node with dagre, a screen, a package, a folder of models) is left out, and said. ``--quick`` runs a small
part of each, to try it; ``--rows`` runs some rows of the one benchmark that is named, and the figures name them. DIR
gets ``figures.json``: what is there of benchmarks that do not run stays. ``--page`` keeps the file here, and
writes ``resources/help/figures.md`` with its plots and the figures of the README. The exit status is 1 if a figure is
lost.
"""

import argparse
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import psutil
from msgspec.structs import replace

from ace_studio.engine.measure import Ratio
from ace_studio.records.places import example_recipe
from ace_studio.records.results import decode_result
from ace_studio.records.targets import TARGET_ROWS
from tests.benchmarks.bench_kept_aside import KeptFound
from tests.benchmarks.bench_layout import LayoutFound
from tests.benchmarks.capture_row import RowFound, cpu_s
from tests.benchmarks.children import adopt_orphans, reap_orphans, run_child
from tests.benchmarks.figures import (
    KEPT,
    Figure,
    ceilings_of,
    machine_here,
    median_of,
    read,
    spread,
    write,
)
from tests.benchmarks.model_files import load_file
from tests.benchmarks.pages import made_of
from tests.benchmarks.peers.found import PeerFound

BUSY_CORES = 0.2
"""So much of a core, on average, may others use while a benchmark runs."""
LIMIT_S = 6 * 3600.0
WELL_AHEAD = 1.1
"""Ratio from which a model counts as well ahead of its fastest peer."""
EXAMPLE = "the shipped example"
_GESTURE = re.compile(r"^(.+): median ([\d.]+) ms.*, n \d+, limit ([\d.]+) ms", flags=re.MULTILINE)


# --- what each benchmark left, as figures ---


def _read(path: Path, kind: Any = Any) -> Any:
    return msgspec.json.decode(path.read_bytes(), type=kind)


def _count(name: str, what: str, rows: Iterable[tuple[str, bool]], peer: str = "") -> Figure:
    """How many of some rows are held, and which are not."""
    held = dict(rows)
    lost = [row for row, is_held in held.items() if not is_held]
    value = len(held) - len(lost)
    words = f"{value} of {len(held)} {what}" + f"; lost: {', '.join(lost)}" * bool(lost)
    return Figure(id=name, what=words, value=value, unit=f"of {len(held)}", peer=peer, lost=bool(lost))


def _capture(folder: Path) -> list[Figure]:
    summary = _read(folder / "summary.json")
    tool, count = max(summary["proven_by_tool"].items(), key=lambda one: one[1])
    rows = [_read(path, RowFound) for path in folder.glob("*.json") if path.name != "summary.json"]
    what = f"{summary['whole']} of {summary['rows']} architectures are captured as one graph that is proven at sizes "
    whole = Figure(
        id="capture.whole", what=f"{what}no example has; by hand with torch's own {tool}: {count}",
        value=summary["whole"], unit=f"of {summary['rows']}", peer=f"{tool} by hand", peer_value=count,
        lost=summary["whole"] <= count, counted=True,
    )  # fmt: skip
    ratios = spread([1 / one.ratio for one in rows if one.ratio])
    what = f"a capture with its proof is {ratios.median:.3g} times as fast as torch.export alone, which proves nothing"
    return [whole, median_of("capture.time", what, ratios, peer="bare torch.export")]


def _compressed(name: str, which: str, claim: str, rows: Sequence[tuple[str, bool, str, Ratio | None]]) -> list[Figure]:
    """How many models are held, the one that looks worst beside its fastest peer, and how many are well ahead of it."""
    what = f"{which} run as fast (within the noise) after ACE Studio as after the fastest of {claim}"
    figures = [_count(f"{name}.held", what, [row[:2] for row in rows], "the fastest tool")]
    timed = [(model, peer, ratio) for model, _, peer, ratio in rows if ratio]
    for model, peer, ratio in sorted(timed, key=lambda one: one[2].median)[:1]:
        what = f"the worst of the {which}, {model}, runs {ratio.median:.3g} times as fast as after {peer}"
        figures.append(median_of(f"{name}.worst", what, ratio, peer=peer))
    ahead = sum(ratio.median >= WELL_AHEAD for _, _, ratio in timed)
    what = f"{ahead} of {len(rows)} {which} run at least {WELL_AHEAD} times as fast as after the fastest other tool"
    return [
        *figures,
        Figure(id=f"{name}.ahead", what=what, value=ahead, unit=f"of {len(rows)}", peer="the fastest tool"),
    ]


def _peers(folder: Path) -> list[Figure]:
    rows = [
        (one.name, one.is_as_fast and one.is_as_faithful, one.fastest_peer,
         one.ratio and Ratio(one.ratio, one.ratio_low, one.ratio_high))
        for one in _read(folder / "summary.json", list[PeerFound])
    ]  # fmt: skip
    claim = "NNCF, ONNX Runtime and torchao, at its fidelity or better"
    return _compressed("peers", "models of the comparison", claim, rows)


def _kept(folder: Path) -> list[Figure]:
    rows = [
        (one.name, not one.reasons, one.fastest_peer,
         one.fastest and Ratio(one.fastest.ratio, one.fastest.low, one.fastest.high))
        for one in _read(folder / "summary.json", list[KeptFound])
    ]  # fmt: skip
    claim = "NNCF and ONNX Runtime, with at most 1 % drop of their metric"
    return _compressed("kept", "models that nobody tuned for", claim, rows)


def _goals(folder: Path) -> list[Figure]:
    held = [(one["case"], one["met"] and one["fewer"] and one["as_fast"]) for one in _read(folder / "summary.json")]
    what = "goals on a metric are met, by a model as fast (to 5 %) as that of NNCF's accuracy control, in no more"
    return [_count("goals.held", f"{what} evaluations", held, "NNCF's accuracy control")]


def _layout(folder: Path) -> list[Figure]:
    rows = _read(folder / "summary.json", list[LayoutFound])
    worst = min(rows, key=lambda one: spread(one.ratios).median)
    ratio = spread(worst.ratios)
    what = f"a flat graph ({worst.graph}, {worst.ops:,} ops, the worst) is laid out {ratio.median:.3g} times as fast as"
    held = [(f"{one.graph} {one.ops}", one.is_held) for one in rows]
    words = "flat graphs are laid out sooner than by dagre, with at most a tenth more crossings"
    return [
        median_of("layout.worst", f"{what} by dagre", ratio, peer="dagre"),
        _count("layout.held", words, held, "dagre"),
    ]


def _gestures(folder: Path) -> list[Figure]:
    found = _GESTURE.findall(folder.with_suffix(".log").read_text(encoding="utf-8"))
    held = [(name, float(took) < float(limit)) for name, took, limit in found]
    place = folder.name.replace("-", " ")
    return [_count(f"{folder.name}.held", f"gestures ({place}) take less time than their limits", held)]


def _example(folder: Path) -> list[Figure]:
    result = decode_result((folder / "result.json").read_bytes())
    base = result.baseline
    assert base and base.metric and result.chosen is not None
    run, model = result.runs[result.chosen], load_file(example_recipe().with_name("model.py"))
    speed = Ratio(run.speedup or 0.0, run.speedup_low or 0.0, run.speedup_high or 0.0)
    size, pictures = sum(one.numel() for one in model.make_model().parameters()), len(model.load_splits()[1].digits)
    what = f"{EXAMPLE} at {run.precision} in {TARGET_ROWS[run.target].label} is {speed.median:.3g} times as fast"
    return [
        Figure(id="example.parameters", what=f"the shipped example has {size:,} parameters", value=size),
        Figure(
            id="example.accuracy", what=f"the accuracy of the shipped example is {base.metric:.4f}", value=base.metric
        ),
        Figure(id="example.pictures", what=f"its accuracy is measured on {pictures} held-out pictures", value=pictures),
        median_of("example.speed", f"{what} as {base.name}", speed, peer=base.name),
        *ceilings_of("example", EXAMPLE, result),
    ]


def _own(folder: Path) -> list[Figure]:
    return read(folder / "figures.json")


# --- the benchmarks ---


class Benchmark(NamedTuple):
    """One module to run, and how what it left is read."""

    module: str
    gather: Callable[[Path], list[Figure]] | None = None
    """None: its figure is whether all its claims hold."""
    words: str = "--out {out}"
    quick: str = ""
    """More words for a quick run."""
    needs: tuple[str, ...] = ()
    """Packages, and what `missing` knows besides."""
    with_models: str = ""
    """More words where there is a folder of models."""


def _on_screen(name: str, gather: Callable[[Path], list[Figure]]) -> Benchmark:
    words = f"tests/benchmarks/bench_{name}.py -m benchmark -s -p no:cacheprovider --basetemp {{out}}"
    return Benchmark("pytest", gather, words, needs=("screen",))


RUNTIMES = ("nncf", "openvino", "onnxruntime")
PREFIX = "tests.benchmarks.bench_"
BENCHMARKS = {
    "start": Benchmark(f"{PREFIX}start", _own, quick="--rounds 2"),
    "scale": Benchmark(f"{PREFIX}scale", _own, quick="--rounds 1 --ops 100 1000 --runs 1 100"),
    "sweep": Benchmark(f"{PREFIX}sweep", _own, quick="--jobs 50 --real 3", needs=("distributed",)),
    "intervals": Benchmark(f"{PREFIX}intervals", _own, quick="--count 8 --sizes 96"),
    "example": Benchmark("ace_studio", _example, "run {recipe} --out {out} --trust"),
    "layout": Benchmark(
        f"{PREFIX}layout", _layout, "--out {out} --engine {engine}", "--sizes 100 --rounds 2", ("dagre",)
    ),
    "graph-view": _on_screen("graph_view", _gestures),
    "panels": _on_screen("panels", _gestures),
    "window": _on_screen("window", _own),
    "time": Benchmark(f"{PREFIX}time", _own, quick="--only digits", needs=("transformers", *RUNTIMES)),
    "rounding": Benchmark(
        f"{PREFIX}rounding", _own, "--out {out} --models {models}", "--only wordsim --seconds 30", ("models", *RUNTIMES)
    ),
    "capture": Benchmark(f"{PREFIX}capture", _capture, quick="--rows 4", needs=("timm", "transformers")),
    "partial": Benchmark(f"{PREFIX}partial", quick="--only lstm", needs=RUNTIMES[1:]),
    "slow-traces": Benchmark(f"{PREFIX}slow_traces", quick="--only resnet50 --rounds 1"),
    "sensitivity": Benchmark(f"{PREFIX}sensitivity", quick="--only mobilenetv2 --size 96"),
    "decode": Benchmark(f"{PREFIX}decode", quick="--tokens 4 --repetitions 1", needs=RUNTIMES),
    "builds": Benchmark(f"{PREFIX}builds", quick="--only resnet50 --rounds 1", needs=RUNTIMES),
    "mixtures": Benchmark(
        f"{PREFIX}mixtures", _own, quick="--only mobilenet_v2 --processes 2", needs=("timm", *RUNTIMES)
    ),
    "peers": Benchmark(
        f"{PREFIX}peers",
        _peers,
        "--out {out}",
        "--only mobilenet_v2 --rounds 5 --processes 2",
        RUNTIMES,
        with_models="--models {models}",
    ),
    "kept": Benchmark(
        f"{PREFIX}kept_aside", _kept, "--out {out} --work {work}", "--only mlp_mixer --processes 2", RUNTIMES
    ),
    "goals": Benchmark(f"{PREFIX}goals", _goals, "{models} --out {out}", "--only vad", ("models", *RUNTIMES)),
}
"""The cheap ones first."""


def missing(benchmark: Benchmark, options: argparse.Namespace) -> str:
    """What a benchmark lacks here, in words; empty if nothing."""
    has_dagre = options.engine is not None and (options.engine / "node_modules/@dagrejs/dagre").is_dir()
    is_screenless = sys.platform == "linux" and not {"DISPLAY", "WAYLAND_DISPLAY"} & set(os.environ)
    problems = {
        "dagre": "" if shutil.which("node") and has_dagre else "Node, and --engine FOLDER with dagre (bench_layout)",
        "screen": "a screen (xvfb-run in front of the command makes one)" if is_screenless else "",
        "models": "" if options.models else "--models FOLDER (bench_goals)",
    }
    found = (problems.get(need, "" if need in problems or find_spec(need) else need) for need in benchmark.needs)
    return ", ".join(filter(None, found))


def _busy_s() -> float:
    """Processor seconds that this machine has worked."""
    times = psutil.cpu_times()
    return sum(getattr(times, name, 0.0) for name in ("user", "nice", "system", "irq", "softirq", "steal"))


def run(name: str, options: argparse.Namespace) -> list[Figure]:
    """Run one benchmark and return its figures; one that says so if it did not end with any."""
    benchmark, folder = BENCHMARKS[name], options.out / name
    shutil.rmtree(folder, ignore_errors=True)
    rows = ["--only", *options.rows] if options.rows else []
    more = (benchmark.quick if options.quick else "", benchmark.with_models if options.models else "")
    words = " ".join((benchmark.words, *more)).split() + rows
    places = {"out": folder, "work": options.out / "work", "models": options.models, "engine": options.engine}
    places["recipe"] = example_recipe()
    before = time.monotonic(), _busy_s(), cpu_s()
    log = folder.with_suffix(".log")
    ending = run_child(benchmark.module, [word.format(**places) for word in words], log=log, limit_s=LIMIT_S)
    reap_orphans()
    wall_s, all_s, own_s = (
        now - then for now, then in zip((time.monotonic(), _busy_s(), cpu_s()), before, strict=True)
    )
    try:
        figures = benchmark.gather(folder) if benchmark.gather else []
    except Exception as error:  # noqa: BLE001 - what a benchmark left may lack anything
        figures, ending = [], f"{ending or 'ended well'}, but gave no figures: {type(error).__name__}: {error}"[:200]
    if not figures or (ending and not any(one.lost for one in figures)):
        what = f"all claims of {name} hold{ending and f': no, it {ending}'}"
        figures.append(Figure(id=f"{name}.claims", what=what, value=float(not ending), lost=bool(ending)))
    options_said = " ".join(["", *(["--rows", *rows[1:]] if rows else []), *(["--quick"] if options.quick else [])])
    facts: dict[str, Any] = {
        "command": f"python -m tests.benchmarks.all --only {name}{options_said} --out DIR",
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": machine_here(),
        "busy": all_s - own_s > BUSY_CORES * wall_s,
        "quick": options.quick,
    }
    said = f"{name}: {wall_s:.0f} s, {len(figures)} figures{', busy' * facts['busy']}; {ending or 'ended well'}"
    print(said, flush=True)
    if rows:
        figures = [replace(one, what=f"{one.what}; of {', '.join(options.rows)}") for one in figures]
    return [replace(one, **facts) for one in figures]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for, or write the pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--out", type=Path)
    what.add_argument("--page", type=Path, metavar="FIGURES")
    parser.add_argument("--only", nargs="+", choices=list(BENCHMARKS), default=list(BENCHMARKS))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rows", nargs="+", metavar="ROW", help="of the one benchmark that --only names")
    parser.add_argument(
        "--models", type=Path, help="trained models with labels: for goals, rounding and some rows of peers"
    )
    parser.add_argument("--engine", type=Path, help="folder with node_modules/@dagrejs/dagre")
    options = parser.parse_args(arguments)
    if options.page:
        figures = read(options.page)
        write(KEPT, figures)
        for path, text in made_of(figures).items():
            path.write_text(text, encoding="utf-8")
        return 0
    if options.rows and len(options.only) != 1:
        parser.error("--rows are those of one benchmark: name it with --only")
    options.out = options.out.absolute()
    options.out.mkdir(parents=True, exist_ok=True)
    os.environ["XDG_DATA_HOME"] = str(options.out / "data")  # the example is no run of the user's history
    for name in options.only:
        if lacks := missing(BENCHMARKS[name], options):
            print(f"{name}: left out, it needs {lacks}", flush=True)
            continue
        found = run(name, options)
        kept = [one for one in read(options.out / "figures.json") if one.id.partition(".")[0] != name]
        write(options.out / "figures.json", [*kept, *found])
    return int(any(one.lost for one in read(options.out / "figures.json")))


if __name__ == "__main__":
    adopt_orphans()  # here, and not in the process of a test
    sys.exit(main())
