"""Goals on trained models with labels, beside NNCF's quantization with accuracy control on the same model and goal.

    python -m tests.benchmarks.bench_goals MODELS --out FOLDER [--only NAME ...] [--max-drop 0.005] [--target openvino]

MODELS is a folder of files ``NAME.py``, each with ``load()`` -> (module, tracing examples), ``calibration()`` -> list
of argument tuples, ``score(predict)`` -> the metric, higher is better, and if it reads text ``META = {"kind": "text"}``
(NNCF then gets its setting for transformers). Case ``NAME`` lets the goal choose everything; ``NAME:per-tensor`` asks
both for 8-bit weights with one step per tensor, which ruins some models.

Each side runs in a process of its own and counts how often it measured the metric, the original model's included. A
third process opens both artifacts in the bare runtime and measures the metric anew. Fresh processes, one after the
other, then time them there in balanced order. FOLDER gets a JSON file per case, ``table.md`` and ``summary.json``. The
exit status is 1 unless every goal is met on the metric as the bare runtime measures it, with no more evaluations than
NNCF, and not slower than its result (if that meets the goal).
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.benchmarks.children import run_child
from tests.benchmarks.model_files import load_file
from tests.benchmarks.peers.fresh import time_freshly
from tests.benchmarks.peers.opening import Inputs, Left, Run, open_left, write_lineup
from tests.benchmarks.peers.pooling import pooled_ratio, typical_ms

AS_FAST = 1.05
"""Up to this ratio of the times two artifacts count as equally fast."""
ROUNDS = 30
PROCESSES = 5


class Counted:
    """A metric that counts how often it is measured."""

    def __init__(self, score: Callable[[Any], float]) -> None:
        self.score = score
        self.values: list[float] = []

    def __call__(self, predict: Any) -> float:
        self.values.append(self.score(predict))
        return self.values[-1]


def find_ours(model: ModuleType, folder: Path, *, max_drop: float, target: str, is_per_tensor: bool) -> dict[str, Any]:
    """`ace_studio.compile` with nothing but data and the goal."""
    import ace_studio

    module, examples = model.load()
    score = Counted(model.score)
    shutil.rmtree(folder / "run", ignore_errors=True)  # or the search would go on where another one stopped
    started = time.monotonic()
    result = ace_studio.compile(
        module,
        tracing_inputs=examples,
        calibration_inputs=model.calibration(),
        evaluate=score,
        max_drop=max_drop,
        target=target,
        profile=False,
        out=folder / "run",
        **({"default": "int8-static", "weights": "per-tensor"} if is_per_tensor else {}),
    )
    report = result.report
    chosen = report.runs[report.chosen] if report.chosen is not None else None
    lows = [step for step in report.search if not step.kept_high] or list(report.runs)
    return {
        "met": bool(report.goal_met),
        "artifact": str(folder / "run" / chosen.artifact) if chosen is not None and chosen.artifact else "",
        "evaluations": len(score.values),
        "seconds": round(time.monotonic() - started, 1),
        "precision": chosen.precision if chosen is not None else "",
        "all_low": lows[0].metric if lows else None,
        "steps": [
            f"{step.low}+{step.kept_high} {step.high}: {step.metric}, {step.latency_ratio} of the time"
            for step in report.search
        ],
        "sensitive": [
            f"{one.id} {one.precision} {one.sqnr_db}"
            for one in sorted(report.sensitivity, key=lambda one: one.sqnr_db)[:4]
        ],
    }


def find_nncf(model: ModuleType, folder: Path, *, max_drop: float, is_per_tensor: bool) -> dict[str, Any]:
    """``nncf.quantize_with_accuracy_control`` over ``ov.convert_model``, as its page shows it."""
    import nncf
    import openvino
    import torch

    module, examples = model.load()
    with torch.no_grad():
        converted = openvino.convert_model(module, example_input=examples[-1])
    score = Counted(model.score)
    calls = model.calibration()

    def validate(compiled: Any, _: Any) -> tuple[float, None]:
        return score(predict_of(compiled)), None

    advanced: dict[str, Any] = {}
    if getattr(model, "META", {}).get("kind") == "text":
        advanced["model_type"] = nncf.ModelType.TRANSFORMER
    if is_per_tensor:
        steps = nncf.quantization.advanced_parameters.QuantizationParameters(per_channel=False)
        advanced["advanced_quantization_parameters"] = nncf.AdvancedQuantizationParameters(
            weights_quantization_params=steps
        )
    feed = nncf.Dataset(calls, lambda call: tuple(value.numpy() for value in call))
    started = time.monotonic()
    quantized = nncf.quantize_with_accuracy_control(
        converted,
        feed,
        nncf.Dataset([0]),
        validate,
        max_drop=max_drop,
        drop_type=nncf.DropType.RELATIVE,
        subset_size=len(calls),
        **advanced,
    )
    path = folder / "nncf.xml"
    openvino.save_model(quantized, str(path), compress_to_fp16=False)
    return {
        "artifact": str(path),
        "evaluations": len(score.values),
        "seconds": round(time.monotonic() - started, 1),
        "values": score.values,
    }


def predict_of(compiled: Any) -> Callable[..., Any]:
    """A compiled OpenVINO model as the models' ``score`` calls it: tensors in, one tensor or a tuple out."""
    import torch

    def predict(*tensors: torch.Tensor) -> Any:
        found = compiled([tensor.numpy() for tensor in tensors])
        results = [torch.from_numpy(found[output].copy()) for output in compiled.outputs]
        return results[0] if len(results) == 1 else tuple(results)

    return predict


def judge(model: ModuleType, artifacts: dict[str, str], folder: Path) -> dict[str, Any]:
    """Metric and latency of the artifacts in the bare runtime."""
    import torch

    torch.set_num_threads(1)
    module, examples = model.load()
    with torch.no_grad():
        found: dict[str, Any] = {"original": {"metric": model.score(module)}}
    lefts = {name: Left(kind="bare openvino f32", path=path) for name, path in artifacts.items()}
    for name, left in lefts.items():
        path = Path(left.path)
        size = path.stat().st_size + path.with_suffix(".bin").stat().st_size
        metric = model.score(_as_predict(open_left(left, examples[0])))
        found[name] = {"metric": metric, "megabytes": round(size / 1e6, 3)}
    if lefts:
        found |= time_artifacts(found, lefts, examples[0], folder)
    return found


def _as_predict(run: Run) -> Callable[..., Any]:
    def predict(*tensors: Any) -> Any:
        results = run(*tensors)
        return results[0] if len(results) == 1 else tuple(results)

    return predict


def time_artifacts(found: dict[str, Any], lefts: dict[str, Left], call: Inputs, folder: Path) -> dict[str, Any]:
    """What was found with the times of fresh processes, and the ratio where there are two artifacts.

    Raises: RuntimeError if one of them could not be timed.
    """
    write_lineup(folder, lefts, first=call, timed=call)
    times = time_freshly(folder, processes=PROCESSES, rounds=ROUNDS)
    if times.errors:
        raise RuntimeError(f"not timed: {times.errors}")
    timed = {name: found[name] | {"ms": round(typical_ms(one), 4)} for name, one in times.samples.items()}
    if {"ours", "nncf"} <= set(timed):
        ratio = pooled_ratio(times.samples["ours"], times.samples["nncf"])
        timed["time_over_peer"] = {"median": ratio.median, "low": ratio.low, "high": ratio.high}
    return timed


def child(arguments: argparse.Namespace) -> None:
    """One side of one case."""
    name, _, variant = arguments.case.partition(":")
    model = load_file(arguments.models / f"{name}.py")
    folder: Path = arguments.out
    options: dict[str, Any] = {"max_drop": arguments.max_drop, "is_per_tensor": variant == "per-tensor"}
    if arguments.role == "ours":
        found = find_ours(model, folder, target=arguments.target, **options)
    elif arguments.role == "nncf":
        found = find_nncf(model, folder, **options)
    else:
        sides = {
            role: json.loads((folder / f"{role}.json").read_text())
            for role in ("ours", "nncf")
            if (folder / f"{role}.json").exists()
        }
        artifacts = {role: side["artifact"] for role, side in sides.items() if side.get("artifact")}
        found = judge(model, artifacts, folder)
    (folder / f"{arguments.role}.json").write_text(json.dumps(found, indent=1))


def run_case(case: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Both sides and the judge of one case."""
    folder = arguments.out / case.replace(":", "-")
    folder.mkdir(parents=True, exist_ok=True)
    row: dict[str, Any] = {"case": case}
    for role in ("ours", "nncf", "judge"):
        file = folder / f"{role}.json"
        file.unlink(missing_ok=True)
        words = [str(arguments.models), "--out", str(folder), "--case", case, "--role", role]
        words += ["--max-drop", str(arguments.max_drop), "--target", arguments.target]
        ending = run_child("tests.benchmarks.bench_goals", words, log=folder / f"{role}.log", limit_s=arguments.limit_s)
        row[role] = json.loads(file.read_text()) if file.exists() else {"error": ending or "nothing written"}
    return row | verdict(row, arguments.max_drop)


def verdict(row: dict[str, Any], max_drop: float) -> dict[str, Any]:
    """Whether the goal is met on the recomputed metric, with fewer evaluations, and as fast."""
    judged, ours, nncf = row["judge"], row["ours"], row["nncf"]
    if "ours" not in judged:
        return {"met": False, "fewer": False, "as_fast": False}
    original = judged["original"]["metric"]
    drop = {side: (original - judged[side]["metric"]) / abs(original) for side in ("ours", "nncf") if side in judged}
    peer_met = drop.get("nncf", 1.0) <= max_drop + 1e-9
    ratio = judged.get("time_over_peer", {}).get("median")
    return {
        "met": ours["met"] and drop["ours"] <= max_drop + 1e-9,
        "drop": drop,
        "peer_met": peer_met,
        "fewer": "evaluations" not in nncf or ours["evaluations"] <= nncf["evaluations"],
        "time_over_peer": ratio,
        "as_fast": ratio is None or not peer_met or ratio <= AS_FAST,
    }


def table(rows: list[dict[str, Any]]) -> str:
    """Everything as markdown."""
    titles = ["case", "original", "all low", "ours", "evaluations", "ms", "MB", "NNCF", "evaluations", "ms", "MB"]
    titles += ["ours / NNCF", "met"]
    lines = ["| " + " | ".join(titles) + " |", "|---" * len(titles) + "|"]
    for row in rows:
        judged = row["judge"]
        cells = [row["case"], _number(judged.get("original", {}).get("metric")), _number(row["ours"].get("all_low"))]
        for side in ("ours", "nncf"):
            seen, found = judged.get(side, {}), row[side]
            cells += [_number(seen.get("metric")), str(found.get("evaluations", found.get("error", "")))]
            cells += [_number(seen.get("ms")), _number(seen.get("megabytes"))]
        cells += [_number(row.get("time_over_peer")), "yes" if row["met"] else "no"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def main() -> int:
    """Run the cases and say whether all is as it must be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--max-drop", type=float, default=0.005)
    parser.add_argument("--target", default="openvino")
    parser.add_argument("--limit-s", type=float, default=1200.0)
    parser.add_argument("--case", default="", help=argparse.SUPPRESS)
    parser.add_argument("--role", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    arguments.models, arguments.out = arguments.models.absolute(), arguments.out.absolute()
    if arguments.role:
        child(arguments)
        return 0
    names = sorted(path.stem for path in arguments.models.glob("*.py"))
    cases = arguments.only or [case for name in names for case in (name, f"{name}:per-tensor")]
    rows = [run_case(case, arguments) for case in cases]
    (arguments.out / "table.md").write_text(table(rows))
    (arguments.out / "summary.json").write_text(json.dumps(rows, indent=1))
    print(table(rows))
    return 0 if all(row["met"] and row["fewer"] and row["as_fast"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
