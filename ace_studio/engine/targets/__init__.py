"""The registry of targets: one row per runtime, in the order of the recipe's contract.

A row is cheap to make; what a runtime needs is imported when it is asked whether it is there.
"""

from __future__ import annotations

from collections.abc import Iterable

from ace_studio.engine.flow import CapturedModel, PartialModel
from ace_studio.engine.targets.base import Target
from ace_studio.engine.targets.executorch.target import ExecuTorchTarget
from ace_studio.engine.targets.onnxruntime.target import OnnxRuntimeTarget
from ace_studio.engine.targets.openvino.target import OpenVinoTarget
from ace_studio.engine.targets.shared.support import judge_model, summarize
from ace_studio.engine.targets.tensorrt.target import TensorRtTarget
from ace_studio.engine.targets.torch.aoti import AotiTarget
from ace_studio.engine.targets.torch.eager import EagerTarget
from ace_studio.engine.targets.torch.inductor import InductorTarget
from ace_studio.engine.targets.torch.torchao_cuda import TorchaoCudaTarget
from ace_studio.records.messages import TargetRefusals, TargetReport
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.results import TargetSupport

_ROWS: tuple[Target, ...] = (
    EagerTarget(),
    InductorTarget(),
    AotiTarget(),
    OnnxRuntimeTarget(),
    OpenVinoTarget(),
    ExecuTorchTarget(),
    TorchaoCudaTarget(),
    TensorRtTarget(),
)

TARGETS: dict[str, Target] = {row.name: row for row in _ROWS}
"""Name -> row, in contract order."""


def report_targets() -> tuple[TargetReport, ...]:
    """Every row with whether it can be used on this machine, and each precision with the reason if it cannot."""
    return tuple(_report(row) for row in TARGETS.values())


def report_support(captured: CapturedModel | PartialModel, targets: Iterable[Target]) -> tuple[TargetSupport, ...]:
    """How each of the targets that are available takes the ops of a graph; nothing is built."""
    return tuple(summarize(row.name, judge_model(row.support, captured)) for row in targets if row.available().ok)


def report_refusals(operators: Iterable[str]) -> tuple[TargetRefusals, ...]:
    """Which of these operators each available target leaves at a float precision, and why."""
    names = sorted(set(operators))
    return tuple(_refusals(row, names) for row in TARGETS.values() if row.available().ok)


def _refusals(row: Target, operators: Iterable[str]) -> TargetRefusals:
    possible = [each for each in Precision if not row.precision_problem(each)]
    found = {op: {str(each): words for each in possible if (words := row.op_problem(op, each))} for op in operators}
    return TargetRefusals(target=row.name, operators={op: reasons for op, reasons in found.items() if reasons})


def _report(row: Target) -> TargetReport:
    found = row.available()
    precisions = {
        str(precision): row.precision_problem(precision) if found.ok else found.reason for precision in Precision
    }
    return TargetReport(
        name=row.name,
        label=row.label,
        available=found.ok,
        reason=found.reason,
        install=found.install,
        version=found.version,
        precisions=precisions,
        is_in_auto=row.is_in_auto,
    )
