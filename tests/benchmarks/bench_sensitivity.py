"""The sensitivity scan beside the long way: every op run low by itself, on networks of the usual kinds.

    python -m tests.benchmarks.bench_sensitivity --out FOLDER [--models FOLDER] [--only NAME ...] [--size 160]
        [--style reads|pairs|results]

ResNet50 and MobileNetV2 have random weights, batch norms with statistics of random data, and random pictures of
``--size``; a folder of models (files with ``load()`` -> (module, tracing examples) and ``calibration()``) adds trained
ones. Per precision: Spearman's rank correlation with the long way of the scan and of its probes alone (a scan runs the
most sensitive ops low by themselves as far as its budget goes, a small graph's all), the cost in passes forward, the
same by the clock. ``--style`` is what the runtime rounds around 8-bit ops (`quantize.simulate.int8_style`).
FOLDER gets ``table.md`` and ``summary.json``. The exit status is 1 unless every scan's correlation
is at least 0.9, at a cost of at most 12 passes.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ace_studio.engine.capture import capture_model
from ace_studio.engine.flow import CapturedModel, Example, LoadedModel
from ace_studio.engine.load.torchvision.ops import make_importable
from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.simulate import PAIRS, READS, RESULTS, Int8Style
from ace_studio.engine.sensitivity import Scan, ScanRequest
from ace_studio.engine.sensitivity.scan import BUDGET
from ace_studio.records.recipes.plan import Precision, Scheme, WeightGranularity
from ace_studio.records.recipes.recipe import Recipe
from tests.benchmarks.model_files import load_file

ENOUGH = 0.9
PRECISIONS = (Precision.INT8_STATIC, Precision.INT8_DYNAMIC)
SAMPLES = 4
STYLES = {style.name: style for style in (READS, PAIRS, RESULTS)}
Case = tuple[nn.Module, list[Any], list[Any]]


def pictures(make: Callable[[], nn.Module], size: int) -> Case:
    """A network for pictures whose batch norms have seen data, so that nothing grows without bound."""
    torch.manual_seed(0)
    module = make().train()
    with torch.no_grad():
        for _ in range(3):
            module(torch.randn(4, 3, size, size))
    calls = [(torch.randn(2, 3, size, size),) for _ in range(SAMPLES)]
    return module.eval(), [(torch.randn(1, 3, size, size),), calls[0]], calls


def built_in(size: int) -> dict[str, Callable[[], Case]]:
    """The networks that need no folder."""

    def of_timm(name: str) -> Case:
        make_importable()  # timm imports torchvision
        import timm

        return pictures(lambda: timm.create_model(name), size)

    return {"resnet50": lambda: of_timm("resnet50"), "mobilenetv2": lambda: of_timm("mobilenetv2_100")}


def given(path: Path) -> Case:
    """A trained model of a folder."""
    model = load_file(path)
    module, examples = model.load()
    return module, examples, model.calibration()


def captured_of(case: Case) -> CapturedModel:
    """The whole graph."""
    module, examples, _ = case
    with torch.no_grad():
        found, _ = capture_model(
            LoadedModel(module=module.eval(), source=Path(), sha256=""),
            [Example.of(one) for one in examples],
            Recipe(),
            device=torch.device("cpu"),
            reporter=Reporter(),
        )
    assert isinstance(found, CapturedModel), "it must be captured whole"
    return found


def spearman(one: Sequence[float], other: Sequence[float]) -> float:
    """Rank correlation; ties get the mean of their ranks."""
    table = torch.stack([_ranks(torch.tensor(values, dtype=torch.float64)) for values in (one, other)])
    return float(torch.corrcoef(table)[0, 1])


def _ranks(values: Tensor) -> Tensor:
    below = (values[None, :] < values[:, None]).sum(1)
    level = (values[None, :] == values[:, None]).sum(1)
    return below.double() + (level.double() - 1) / 2


def measure(
    name: str, captured: CapturedModel, calls: Sequence[Any], steps: WeightGranularity, *, style: Int8Style
) -> list[dict[str, Any]]:
    """One row per precision set: alone, so that the budget is each one's own."""
    samples = [Example.of(one).tensors() for one in calls[:SAMPLES]]
    rows = []
    for precision in PRECISIONS:
        request = ScanRequest(
            captured=captured,
            samples=samples,
            precisions=[precision],
            scheme=Scheme(weights=steps),
            style=style,
            probes=4,
        )
        started = time.perf_counter()
        scan = Scan(request)
        noise = scan.run()[precision]
        seconds = time.perf_counter() - started
        started = time.perf_counter()
        with torch.no_grad():
            for one in calls[:SAMPLES]:
                Example.of(one).copied().call(captured.module)
        forward = time.perf_counter() - started
        probed = Scan(replace(request, budget=0.0))
        guess = probed.run()[precision]
        exact = dict(scan.saved.alone.get(str(precision), {}))
        true = {op_id: exact.get(op_id) or scan.alone(op_id, precision) for op_id in scan.watched_at(precision)}
        rows.append(
            {
                "model": name,
                "weights": str(steps),
                "precision": str(precision),
                "ops": len(true),
                "followers": sum(scan.watched[one].follows for one in true),
                "spearman": round(spearman([noise[one] for one in true], list(true.values())), 4),
                "spearman_of_probes": round(spearman([guess[one] for one in true], list(true.values())), 4),
                "run_alone": len(exact),
                "forwards": round(scan.saved.forwards, 2),
                "forwards_by_clock": round(seconds / forward, 1),
            }
        )
        print(json.dumps(rows[-1]), flush=True)
    return rows


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Everything as markdown."""
    titles = list(rows[0]) if rows else []
    lines = ["| " + " | ".join(titles) + " |", "|---" * len(titles) + "|"]
    lines += ["| " + " | ".join(str(row[title]) for title in titles) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Scan each, the long way too."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--models", type=Path, default=None)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--style", choices=list(STYLES), default=READS.name)
    parser.add_argument("--size", type=int, default=160)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    cases = built_in(arguments.size)
    for path in sorted(arguments.models.glob("*.py")) if arguments.models else []:
        cases[path.stem] = lambda path=path: given(path)
    rows: list[dict[str, Any]] = []
    for name, make in cases.items():
        if arguments.only and name not in arguments.only:
            continue
        case = make()
        captured = captured_of(case)
        for steps in WeightGranularity:
            rows += measure(name, captured, case[2], steps, style=STYLES[arguments.style])
        (arguments.out / "table.md").write_text(table(rows))
        (arguments.out / "summary.json").write_text(json.dumps(rows, indent=1))
    print(table(rows))
    return 0 if all(row["spearman"] >= ENOUGH and row["forwards"] <= BUDGET for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
