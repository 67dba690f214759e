"""How long tracing with several free spatial sizes takes, beside plain ``torch.export``.

    python -m tests.benchmarks.bench_slow_traces --out FOLDER [--only NAME ...] [--rounds 3] [--limit 300]

Batch, height and width are free. Every trace runs in a process of its own, ours and the plain one in turn, so that
nothing is remembered from one to the next; only the trace is timed, by the clock and in process time. A plain trace
that takes longer than ``--once`` seconds runs once. The graphs are compared with eager at sizes that were not traced.
FOLDER gets ``table.md`` and the single figures. The exit status is 1 if a claim does not hold.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import torch
from torch import Tensor, nn

from ace_studio.engine.capture.verify import difference
from ace_studio.engine.load import make_importable
from ace_studio.engine.torch_private.exporting import DYNAMIC, export_program
from tests.benchmarks.children import run_child

FASTER_BY = 5.0
MUST_BE_FASTER = ("tf_efficientnet_b0", "mobilevitv2_050")
OTHER_SIZES = ((1, 192, 160), (3, 97, 131), (2, 224, 255), (1, 512, 256))


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """One trace: how long, and whether its graph equals eager."""

    seconds: float
    cpu_s: float
    equal: int = 0
    refused: int = 0
    """Sizes that a condition of the graph excludes."""
    unequal: list[str] = []


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One model, traced by both."""

    name: str
    ours: list[Trace]
    plain: list[Trace]
    plain_ended: str = ""
    """Why there is no plain trace, if there is none."""

    def ratio(self, limit_s: float) -> float:
        """Plain process time over ours; if plain was stopped, the limit over our seconds, and it is more than that."""
        if not self.plain:
            return limit_s / statistics.median(one.seconds for one in self.ours)
        return statistics.median(one.cpu_s for one in self.plain) / statistics.median(one.cpu_s for one in self.ours)


class RetinaNetCore(nn.Module):
    """Backbone, pyramid and heads of torchvision's RetinaNet: all of it that has free sizes and no boxes."""

    def __init__(self) -> None:
        super().__init__()
        from torchvision.models import detection  # type: ignore[import-untyped]

        model = detection.retinanet_resnet50_fpn(weights=None, weights_backbone=None)
        self.backbone, self.head = model.backbone, model.head

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        found: dict[str, Tensor] = self.head(list(self.backbone(x).values()))
        return found


def _timm(name: str, **settings: object) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        import timm

        module: nn.Module = timm.create_model(name, pretrained=False, **settings)
        return module

    return make


MODELS: dict[str, Callable[[], nn.Module]] = {
    "tf_efficientnet_b0": _timm("tf_efficientnet_b0"),
    "mobilevitv2_050": _timm("mobilevitv2_050"),
    "retinanet": RetinaNetCore,
    "maxvit_nano": _timm("maxvit_nano_rw_256"),
    "tf_mobilenetv3": _timm("tf_mobilenetv3_large_100"),
    "mobilenetv3": _timm("mobilenetv3_large_100"),
    "swin_tiny": _timm("swin_tiny_patch4_window7_224", dynamic_img_size=True, strict_img_size=False),
    "resnet50": _timm("resnet50"),
}
"""The first three are those whose plain trace took minutes when capture was designed."""


# --- one trace, in a process of its own ---


def trace(name: str, *, plain: bool, checks: bool) -> Trace:
    """Trace a model with batch, height and width free."""
    make_importable()
    torch.manual_seed(0)
    module, x = MODELS[name]().eval(), torch.randn(2, 3, 256, 256)
    shapes = ({0: DYNAMIC, 2: DYNAMIC, 3: DYNAMIC},)
    started, cpu = time.perf_counter(), time.process_time()
    with torch.no_grad():
        if plain:
            program = torch.export.export(module, (x,), dynamic_shapes=shapes, strict=False)
        else:
            program = export_program(module, (x,), {}, dynamic_shapes=shapes, strict=False)
    took = {"seconds": time.perf_counter() - started, "cpu_s": time.process_time() - cpu}
    return _checked(program, module, took) if checks else Trace(**took)


def _checked(program: torch.export.ExportedProgram, module: nn.Module, took: dict[str, float]) -> Trace:
    equal, refused, unequal = 0, 0, []
    graph = program.module()
    with torch.no_grad():
        for size in OTHER_SIZES:
            x = torch.randn(size[0], 3, *size[1:])
            try:
                expected = module(x)
            except (AssertionError, RuntimeError):
                continue
            try:
                actual = graph(x)
            except AssertionError:
                refused += 1
                continue
            text = difference(expected, actual)
            equal += not text
            unequal += [f"{size}: {text}"] if text else []
    return Trace(equal=equal, refused=refused, unequal=unequal, **took)


# --- all of them ---


def measure(name: str, folder: Path, *, rounds: int, limit_s: float, once_s: float) -> Row:
    """Both traces in turn. A plain one that is slow, or that fails, is not repeated."""
    ours: list[Trace] = []
    plain: list[Trace] = []
    ended = ""
    for number in range(rounds):
        found, problem = _in_child(name, folder, plain=False, checks=number == 0, limit_s=limit_s)
        if found is None:
            raise RuntimeError(f"{name}: {problem}; see {folder}")
        ours.append(found)
        if not ended and (not plain or plain[-1].seconds < once_s):
            found, ended = _in_child(name, folder, plain=True, checks=False, limit_s=limit_s)
            plain += [found] if found else []
    return Row(name=name, ours=ours, plain=plain, plain_ended=ended)


def _in_child(name: str, folder: Path, *, plain: bool, checks: bool, limit_s: float) -> tuple[Trace | None, str]:
    kind = "plain" if plain else "ours"
    out = folder / f"{name}-{kind}.json"
    out.unlink(missing_ok=True)
    flags = [*(["--plain"] if plain else []), *(["--checks"] if checks else [])]
    ended = run_child(
        "tests.benchmarks.bench_slow_traces",
        ["--trace", name, "--out", str(out), *flags],
        log=folder / f"{name}-{kind}.log",
        limit_s=limit_s,
    )
    return (msgspec.json.decode(out.read_bytes(), type=Trace) if out.exists() else None), ended


def table(rows: list[Row], limit_s: float) -> str:
    """Medians and ratios as Markdown."""
    lines = [
        "| model | ours: s (process s) | plain: s (process s) | times faster | equal / refused / unequal |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        first = row.ours[0]
        lines.append(
            f"| {row.name} | {_median(row.ours)} | {_median(row.plain) or row.plain_ended} | "
            f"{'>= ' if not row.plain else ''}{row.ratio(limit_s):.1f} | "
            f"{first.equal} / {first.refused} / {len(first.unequal)} |"
        )
    return "\n".join(lines)


def _median(traces: list[Trace]) -> str:
    if not traces:
        return ""
    seconds = statistics.median(one.seconds for one in traces)
    return f"{seconds:.1f} ({statistics.median(one.cpu_s for one in traces):.1f}), n {len(traces)}"


def failed_claims(rows: list[Row], limit_s: float) -> list[str]:
    """The claims that the rows do not bear out, in words."""
    found = [f"{row.name} differs from eager: {row.ours[0].unequal}" for row in rows if row.ours[0].unequal]
    for row in rows:
        stopped = row.plain_ended.startswith("stopped")
        if row.name in MUST_BE_FASTER and (row.plain or stopped) and row.ratio(limit_s) < FASTER_BY:
            found.append(f"{row.name} is only {row.ratio(limit_s):.1f} times faster")
    return found


def main() -> int:
    """Run the benchmark, or one trace for it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="*", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=300.0, help="seconds after which a trace is stopped")
    parser.add_argument("--once", type=float, default=30.0)
    parser.add_argument("--trace", choices=list(MODELS), help=argparse.SUPPRESS)
    parser.add_argument("--plain", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--checks", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.trace:
        found = trace(chosen.trace, plain=chosen.plain, checks=chosen.checks)
        chosen.out.write_bytes(msgspec.json.encode(found))
        return 0
    chosen.out.mkdir(parents=True, exist_ok=True)
    rows = []
    for name in chosen.only:
        rows.append(measure(name, chosen.out, rounds=chosen.rounds, limit_s=chosen.limit, once_s=chosen.once))
        (chosen.out / "rows.json").write_bytes(msgspec.json.encode(rows))
        (chosen.out / "table.md").write_text(table(rows, chosen.limit) + "\n")
        print(table(rows, chosen.limit).splitlines()[-1], flush=True)
    failed = failed_claims(rows, chosen.limit)
    print("\n".join(failed) or "every claim holds")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
