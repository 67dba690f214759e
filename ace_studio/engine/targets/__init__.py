"""The targets of this process, each made from its row when it is first used."""

import importlib
import importlib.util
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType

from ace_studio.engine.flow import Captured
from ace_studio.engine.targets.base import Target
from ace_studio.engine.targets.shared.support import judge_model, summarize
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.messages import TargetRefusals, TargetReport
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.results import TargetSupport
from ace_studio.records.targets import TARGET_ROWS


class _Targets(Mapping[str, Target]):
    """Name -> target, for every row that there is now."""

    def __init__(self) -> None:
        self._made: dict[str, Target] = {}

    def __getitem__(self, name: str) -> Target:
        row = TARGET_ROWS[name]
        if name not in self._made or self._made[name].row != row:
            place, _, class_name = row.implementation.rpartition(":")
            self._made[name] = getattr(_module_at(place), class_name)(row)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(TARGET_ROWS)

    def __len__(self) -> int:
        return len(TARGET_ROWS)


def _module_at(place: str) -> ModuleType:
    """The module of a dotted name, or of a path that ends in ``.py``."""
    if not place.endswith(".py"):
        return importlib.import_module(place)
    spec = importlib.util.spec_from_file_location(f"ace_studio_target_{Path(place).stem}", place)
    if spec is None or spec.loader is None:
        raise ImportError(f"no module at {place}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


TARGETS: Mapping[str, Target] = _Targets()
"""Name -> target, in the order of their rows."""


def select_targets(names: Iterable[str]) -> list[Target]:
    """The targets that a recipe names; ``auto`` is every available one that its row puts into ``auto``.

    Raises: AceError(USAGE) for a name that no row has.
    """
    selected: dict[str, Target] = {}
    for name in names:
        if name == "auto":
            automatic = [target for target in TARGETS.values() if _is_in_auto(target) and target.available().ok]
            selected |= {target.name: target for target in automatic}
        elif name in TARGETS:
            selected[name] = TARGETS[name]
        else:
            raise AceError.of(
                ErrorCode.USAGE,
                f"There is no target named '{name}'",
                remedy="Use one of: auto, " + ", ".join(TARGETS),
                where="[targets] names",
            )
    return list(selected.values())


def _is_in_auto(target: Target) -> bool:
    """Whether ``auto`` takes it: what cannot be run here would be built and never chosen."""
    return target.row.is_in_auto and not target.run_problem()


def report_targets() -> tuple[TargetReport, ...]:
    """Every target with whether it can be used on this machine, and each precision with the reason if it cannot."""
    return tuple(_report(target) for target in TARGETS.values())


def report_support(captured: Captured, targets: Iterable[Target]) -> tuple[TargetSupport, ...]:
    """How each of the targets that are available takes the ops of a graph; nothing is built."""
    return tuple(
        summarize(target.name, judge_model(target.support, captured)) for target in targets if target.available().ok
    )


def report_refusals(operators: Iterable[str]) -> tuple[TargetRefusals, ...]:
    """Which of these operators each available target leaves at a float precision, and why."""
    names = sorted(set(operators))
    return tuple(_refusals(target, names) for target in TARGETS.values() if target.available().ok)


def _refusals(target: Target, operators: Iterable[str]) -> TargetRefusals:
    possible = [each for each in Precision if not target.precision_problem(each)]
    found = {op: {str(each): words for each in possible if (words := target.op_problem(op, each))} for op in operators}
    return TargetRefusals(target=target.name, operators={op: reasons for op, reasons in found.items() if reasons})


def _report(target: Target) -> TargetReport:
    found = target.available()
    precisions = {
        str(precision): target.precision_problem(precision) if found.ok else found.reason for precision in Precision
    }
    return TargetReport(
        name=target.name,
        label=target.label,
        available=found.ok,
        reason=found.reason,
        install=found.install,
        version=found.version,
        precisions=precisions,
        is_in_auto=_is_in_auto(target),
        not_run=target.run_problem(),
    )
