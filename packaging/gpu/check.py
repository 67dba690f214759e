"""Checks everything that needs an NVIDIA GPU, in one command: ``packaging/ace gpu-check --out DIR``.

It runs the tests marked ``gpu``, then a sweep of four models over the targets and precisions of a GPU, timed by CUDA
events, and writes ``gpu-check.md`` and ``gpu-check.json``. Also without ``.venv``: with any interpreter that has a CUDA
build of torch, ``PYTHONPATH=. python packaging/gpu/check.py --out DIR`` in the checkout.

Exit codes: 0 all is well; 1 a test failed, or a job of an installed target; 6 there is no GPU.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
MODELS = ("convolutional", "encoder", "wide", "decoder")
PLANS = {
    "eager": ("fp32", "bf16"),
    "inductor": ("fp32", "bf16"),
    "torchao-cuda": ("bf16", "int8-dynamic + bf16", "int8-weight + bf16", "int4-weight + bf16", "fp8 + bf16"),
    "tensorrt": ("fp32", "fp16", "int8-static"),
    "onnxruntime": ("fp32", "int8-static"),
}
"""Target -> precisions that it has on a GPU, and after ``+`` that of the ops which stay in float."""
NO_GPU = 6
RECIPE = """\
format = 1
[model]
source = "models.py"
entry = "{model}"
[inputs]
tracing = "{model}_inputs"
[calibration]
inputs = "{model}_inputs"
[measure]
device = "{device}"
rounds = 30
"""
COLUMNS = ("model", "target", "plan", "ms", "eager / this", "fp32 here / this", "SQNR dB", "MB", "what")


def sweep_text(models: Sequence[str], targets: Sequence[str]) -> str:
    """The file of the sweep: every precision on every target, without what a target does not have."""
    plans = sorted({plan for target in targets for plan in PLANS[target]})
    written = {plan: _written(plan) for plan in plans}
    lines = ["format = 1", f"recipes = {json.dumps([f'{model}.toml' for model in models])}", "[axes]"]
    lines += [f"target = {json.dumps(list(targets))}", f"plan = [{', '.join(written.values())}]"]
    for target in targets:
        for plan in plans:
            if plan not in PLANS[target]:
                lines += ["[[exclude]]", f'target = "{target}"', f"plan = {written[plan]}"]
    return "\n".join(lines) + "\n"


def _written(plan: str) -> str:
    default, _, rest = plan.partition(" + ")
    return f'{{ default = "{default}", rest = "{rest}" }}' if rest else f'"{default}"'


def write_sweep(folder: Path, *, models: Sequence[str], targets: Sequence[str], device: str) -> Path:
    """Write the models, their recipes and the sweep into a folder, and return the path of the sweep."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(Path(__file__).with_name("models.py"), folder)
    for model in models:
        (folder / f"{model}.toml").write_text(RECIPE.format(model=model, device=device), encoding="utf-8")
    path = folder / "sweep.toml"
    path.write_text(sweep_text(models, targets), encoding="utf-8")
    return path


def ace_studio(*words: str) -> dict[str, Any]:
    """What a command of ACE Studio answers as JSON; its progress goes to stderr as it comes."""
    command = [sys.executable, "-m", "ace_studio", *words, "--json"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if not done.stdout:
        sys.exit(f"gpu-check: '{' '.join(command[1:])}' gave no answer; its last words stand above")
    return dict(json.loads(done.stdout))


def has_cuda_provider() -> bool:
    """Whether the installed ONNX Runtime is the one for NVIDIA GPUs."""
    words = "import onnxruntime; print('CUDAExecutionProvider' in onnxruntime.get_available_providers())"
    done = subprocess.run([sys.executable, "-c", words], stdout=subprocess.PIPE, text=True, check=False)
    return done.stdout.strip() == "True"


def table_lines(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The rows of a sweep as a table of Markdown."""
    yield f"| {' | '.join(COLUMNS)} |"
    yield f"|{'---|' * len(COLUMNS)}"
    for row in rows:
        error = row.get("error") or {}
        what = error.get("what", "") or ", ".join(row.get("warnings", ())) or ("verified" if row["verified"] else "")
        size = row.get("size_bytes")
        cells = [
            Path(row["recipe"]).stem, row["axes"]["target"], row.get("precision") or str(row["axes"]["plan"]),
            _number(row.get("latency_ms"), 3),
            _number(row.get("speedup"), 2), _number(row.get("float_speedup"), 2), _number(row.get("sqnr_db"), 1),
            _number(size / 1e6 if size else None, 1), what.replace("|", "/"),
        ]  # fmt: skip
        yield f"| {' | '.join(cells)} |"


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def report_text(found: Mapping[str, Any]) -> str:
    """The report: what machine this is, how the tests ended, which targets are missing and why, and every job."""
    environment = found["environment"]
    lines = ["# Check on a GPU", "", f"Device: {found['device']}"]
    lines += [f"- {key}: {value}" for key, value in sorted(environment.items()) if isinstance(value, str)]
    lines += ["", "## Tests marked gpu", "", found["tests"]["summary"], "", "## Targets", ""]
    lines += [f"- {name}: {reason or 'installed'}" for name, reason in found["targets"].items()]
    lines += ["", "## Jobs", "", *table_lines(found["rows"])]
    return "\n".join(lines) + "\n"


def run_gpu_tests() -> dict[str, Any]:
    """Run the tests marked gpu; their last line says how many there were."""
    # The project's options ask for plugins of pytest that a machine without .venv lacks (Qt's, among others).
    lenient = ["-o", "addopts=--import-mode=importlib", "-W", "default"]
    command = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", *lenient, "tests/engine/test_cuda.py"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout, file=sys.stderr)
    lines = done.stdout.strip().splitlines()
    return {"passed": done.returncode == 0, "summary": lines[-1] if lines else "pytest did not start"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the check and return its exit code."""
    parser = argparse.ArgumentParser(prog="packaging/ace gpu-check", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for the report and all artifacts")
    parser.add_argument("--models", nargs="+", choices=(*MODELS, "tiny"), default=list(MODELS))
    parser.add_argument("--targets", nargs="+", choices=tuple(PLANS), default=list(PLANS))
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: only to try this command")
    parser.add_argument("--no-tests", action="store_true", help="leave the tests marked gpu out")
    options = parser.parse_args(arguments)
    out = options.out.absolute()
    doctor = ace_studio("doctor")
    cuda = next((one for one in doctor["devices"] if one["name"].startswith("cuda")), {"reason": "torch was not found"})
    if options.device == "cuda" and not cuda.get("available"):
        print(f"gpu-check: no GPU can be used here: {cuda['reason']}", file=sys.stderr)
        print("  remedy: a machine with an NVIDIA GPU, its driver, and a CUDA build of torch", file=sys.stderr)
        return NO_GPU
    known = {one["name"]: "" if one["available"] else one["reason"] for one in doctor["targets"]}
    if options.device == "cuda" and not known.get("onnxruntime") and not has_cuda_provider():
        known["onnxruntime"] = "this ONNX Runtime has no CUDA provider: install onnxruntime-gpu in its place"
    targets = {name: known.get(name, "not known") for name in options.targets}
    installed = [name for name, reason in targets.items() if not reason]
    tests = {"passed": True, "summary": "left out"} if options.no_tests else run_gpu_tests()
    path = write_sweep(out / "sweep", models=options.models, targets=installed, device=options.device)
    swept = ace_studio("sweep", str(path), "--out", str(out / "results"), "--trust", "--workers", "1")
    found = {
        "device": cuda.get("label", "") if options.device == "cuda" else "cpu",
        "environment": {key: doctor[key] for key in ("platform", "python", "cpu")} | doctor["versions"],
        "tests": tests,
        "targets": targets,
        "rows": swept.get("rows", []),
    }
    (out / "gpu-check.json").write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    (out / "gpu-check.md").write_text(report_text(found), encoding="utf-8")
    print(out / "gpu-check.md")
    return 0 if tests["passed"] and swept.get("status") == "ok" else 1


if __name__ == "__main__":
    sys.exit(main())
