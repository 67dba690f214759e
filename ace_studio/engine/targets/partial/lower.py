"""Lowers a model in subgraphs: each subgraph is lowered like a model of its own, and Python runs between them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from ace_studio.engine.flow import BoundPlan, Example, PartialModel, Subgraph, tensor_leaves
from ace_studio.engine.measure import measure_interleaved, timer_for
from ace_studio.engine.progress import Cancelled
from ace_studio.engine.quantize.fidelity import measured_sqnr_db
from ace_studio.engine.subgraphs import run_pieces
from ace_studio.engine.subgraphs.run_pieces import HostedSubgraph, Manifest, SavedSubgraph, SubgraphRunner
from ace_studio.engine.targets.base import Lowered, LoweringJob, OpActual, Target
from ace_studio.engine.targets.shared.flat_call import tensor_places
from ace_studio.engine.targets.shared.library_error import library_reason
from ace_studio.records.errors import AceError
from ace_studio.records.targets import TargetRow

MOST_CALIBRATION_CALLS = 64
"""Calls of one subgraph that its ranges are found with."""


def lower_subgraphs(target: Target, partial: PartialModel, job: LoweringJob) -> Lowered:
    """Build every subgraph on its own; one that the target cannot take, or runs slower than eager, stays eager.

    Args:
        target: What to build for.
        partial: The model in subgraphs.
        job: As for a whole model; its plan has the ids of ``partial.table``.

    Raises: What the first subgraph raised if no subgraph could be built.
    """
    calls = _SubgraphCalls(partial, job)
    built: list[BuiltSubgraph] = []
    errors: list[Exception] = []
    for number, subgraph in enumerate(partial.subgraphs):
        job.reporter.advance(number / len(partial.subgraphs), f"subgraph {subgraph.name} of {len(partial.subgraphs)}")
        try:
            lowered = target.lower(_job_of(subgraph, job, calls))
        except Cancelled:
            raise
        except Exception as error:  # noqa: BLE001 - border: a runtime's own library may raise anything
            errors.append(error)
            problem = error.problem if isinstance(error, AceError) else None
            reason = f"{problem.what}: {problem.why}" if problem else library_reason(error)
            built.append(BuiltSubgraph(subgraph, None, reason))
        else:
            built.append(unless_slower(subgraph, lowered, job))
    if len(errors) == len(built):
        raise errors[0]
    chosen = best_together(partial, built, job)
    lowered = SubgraphsLowered(target.row, partial, chosen)
    if all(one.lowered is None for one in chosen):
        job.reporter.warn(
            "pieces-slower",
            f"{target.label}: no subgraph that could be built at this plan makes the model faster, so every op "
            "stays eager; what is measured is the model as it was",
        )
    elif not lowered.calls_at_work:
        job.reporter.warn(
            "pieces-unused",
            f"{target.label}: subgraphs were built, but none runs when the model is called with the traced example; "
            "eager is measured instead",
        )
    return lowered


def _job_of(subgraph: Subgraph, job: LoweringJob, calls: _SubgraphCalls) -> LoweringJob:
    table = subgraph.captured.table
    ids = {table.op_id[row]: subgraph.id_in_model(table.op_id[row]) for row in table.op_rows()}
    plan = BoundPlan(job.plan.plan, {own: job.plan.ops[ours] for own, ours in ids.items() if ours in job.plan.ops})
    folder = job.folder / subgraph.name
    folder.mkdir(parents=True, exist_ok=True)
    return replace(
        job,
        captured=subgraph.captured,
        plan=plan,
        calibration=lambda: calls.of(subgraph),
        folder=folder,
        shared=job.shared.setdefault(f"subgraph {subgraph.name}", {}),
    )


class _SubgraphCalls:
    """The calls of the subgraphs while the calibration examples run, recorded once per job when first needed."""

    def __init__(self, partial: PartialModel, job: LoweringJob) -> None:
        self._partial = partial
        self._job = job

    def of(self, subgraph: Subgraph) -> Sequence[Example]:
        """Calls of one subgraph; those of its capture if no example reaches it."""
        calls = self._job.once("subgraph calls", self._record)
        return calls[subgraph.name] or list(subgraph.captured.examples)

    def _record(self) -> dict[str, list[Example]]:
        found: dict[str, list[Example]] = {subgraph.name: [] for subgraph in self._partial.subgraphs}

        def heard(subgraph: Subgraph) -> Callable[..., Sequence[Tensor]]:
            kept, module = found[subgraph.name], subgraph.captured.module

            def call(*tensors: Tensor) -> Sequence[Tensor]:
                if len(kept) < MOST_CALIBRATION_CALLS:
                    kept.append(Example(args=tensors).copied())
                results: Sequence[Tensor] = module(*tensors)
                return results

            return call

        hosted = [HostedSubgraph(subgraph.place, heard(subgraph)) for subgraph in self._partial.subgraphs]
        runner = SubgraphRunner(self._partial.module, hosted, controls=self._partial.controls)
        for example in self._job.calibration():
            self._job.reporter.check()
            example.copied().call(runner)
        return found


class SubgraphsLowered(Lowered):
    """The model with its built subgraphs in their places."""

    def __init__(self, row: TargetRow, partial: PartialModel, built: Sequence[BuiltSubgraph]) -> None:
        self._row = row
        self._partial = partial
        self._built = built
        self._call = self._runner = runner_of(partial, built)
        partial.example.copied().call(self._call)  # compiles now what is compiled at the first call
        self.calls_at_work = self._count_calls()
        """Number of subgraph calls in one call of the model."""

    def _count_calls(self) -> int:
        before = self._runner.ran
        self._partial.example.copied().call(self._runner)
        return self._runner.ran - before

    def subgraph_sqnr_db(self) -> float:
        """SQNR of the worst subgraph against its eager graph, on its captured calls, dB; 200 if none is used.

        For models whose Python decides by rounded values (sorting, thresholds): results of the whole model cannot be
        compared number by number there, but those of the subgraphs can.
        """
        worst = 200.0
        with torch.no_grad():
            for one in self._built:
                for example in one.subgraph.captured.examples if one.lowered is not None else ():
                    assert one.lowered is not None
                    wanted = tensor_leaves(example.copied().call(one.subgraph.captured.module))
                    given = tensor_leaves(example.copied().call(one.lowered))
                    worst = min(worst, measured_sqnr_db(wanted, given))
        return worst

    def read_back(self) -> list[OpActual]:
        """What the target does with each subgraph, in the ids of the whole model."""
        return [actual for one in self._built for actual in _actuals(one)]

    def save(self, folder: Path) -> Path:
        """Write every subgraph, the manifest of their places, and the file that runs them."""
        folder.mkdir(parents=True, exist_ok=True)
        saved = []
        for one in self._built:
            if one.lowered is not None:
                own = folder / one.subgraph.name
                own.mkdir(exist_ok=True)
                path = one.lowered.save(own)
                saved.append(
                    SavedSubgraph(
                        one.subgraph.place,
                        path.relative_to(folder).as_posix(),
                        tuple(tensor_places(one.subgraph.captured)),
                    )
                )
        manifest = Manifest(
            target=self._row.name,
            model=type(self._partial.module).__name__,
            pieces=tuple(saved),
            opener=self._row.opener or self._row.name,
            controls=self._partial.controls,
            versions={"torch": torch.__version__},
        )
        manifest.write(folder)
        _save_rest(self._partial, [one.subgraph for one in self._built if one.lowered], folder)
        shutil.copyfile(run_pieces.__file__, folder / "run_pieces.py")
        return folder


def _save_rest(partial: PartialModel, subgraphs: Sequence[Subgraph], folder: Path) -> None:
    """Write the weights that Python between the subgraphs needs, and the first values of what it changes."""
    inside = {name for subgraph in subgraphs for _, name in subgraph.place.weights}
    paths = tuple(f"{subgraph.place.module}." for subgraph in subgraphs if subgraph.place.kind == "module")
    rest = {
        name: partial.first_state.get(name, tensor).detach().cpu().contiguous().clone()
        for name, tensor in partial.module.state_dict().items()
        if isinstance(tensor, Tensor) and name not in inside and not name.startswith(paths)
    }
    if rest:
        save_file(rest, folder / run_pieces.REST)


def _actuals(one: BuiltSubgraph) -> list[OpActual]:
    in_model, table = one.subgraph.id_in_model, one.subgraph.captured.table
    if one.lowered is None:
        device = str(one.subgraph.captured.device)
        ids = [in_model(table.op_id[row]) for row in table.op_rows()]
        return [OpActual(op_id=op_id, actual="fp32", device=device, reason=one.reason) for op_id in ids]
    return [
        replace(actual, op_id=in_model(actual.op_id), fused_into=actual.fused_into and in_model(actual.fused_into))
        for actual in one.lowered.read_back()
    ]


ROUNDS = 6
"""As few as put two calls, or three, equally often at every place: a subgraph may take seconds."""
SLOWER = 1.05
"""A subgraph that takes this much longer than its eager graph is not used."""
CLEARLY_FASTER = 1.3
"""Subgraphs with a smaller speed-up may make the whole model slower, because entering a subgraph takes time."""


@dataclass(frozen=True)
class BuiltSubgraph:
    """One subgraph on a target, built or left eager."""

    subgraph: Subgraph
    lowered: Lowered | None
    reason: str = ""
    """Why it runs eagerly; empty if it does not."""
    gain: float = 0.0
    """Speed-up over eager on its first call."""


def _medians_ms(calls: Sequence[Callable[[], object]], job: LoweringJob) -> list[float]:
    """Median ms of each call, measured in turn so that a busy moment affects all of them."""
    named = {str(number): call for number, call in enumerate(calls)}
    with torch.no_grad():
        samples = measure_interleaved(named, rounds=ROUNDS, reporter=job.reporter.quiet(), timer=timer_for(job.device))
    return [median(one.wall_ms) for one in samples.values()]


def unless_slower(subgraph: Subgraph, lowered: Lowered, job: LoweringJob) -> BuiltSubgraph:
    """The built subgraph, or the eager one if that is faster on the subgraph's first call."""
    ours, plain = subgraph.captured.examples[0].copied(), subgraph.captured.examples[0].copied()
    function = _plain(subgraph)
    built_ms, eager_ms = _medians_ms([lambda: ours.call(lowered), lambda: plain.call(function)], job)
    gain = eager_ms / max(built_ms, 1e-6)
    if built_ms <= eager_ms * SLOWER:
        return BuiltSubgraph(subgraph, lowered, gain=gain)
    reason = f"slower than eager here ({built_ms:.3g} against {eager_ms:.3g} ms), so it stays eager"
    return BuiltSubgraph(subgraph, None, reason, gain)


def _plain(subgraph: Subgraph) -> Callable[..., Any]:
    """The subgraph as the model itself would run it."""
    plain: Callable[[Sequence[Tensor]], Any] | None = getattr(subgraph.captured.module, "plain", None)
    return subgraph.captured.module if plain is None else lambda *tensors: plain(tensors)


def best_together(partial: PartialModel, built: Sequence[BuiltSubgraph], job: LoweringJob) -> list[BuiltSubgraph]:
    """The subgraphs with which the whole model is fastest: all, those that clearly gain, or none."""
    choices = [list(built), [_kept_if(one, one.gain >= CLEARLY_FASTER) for one in built]]
    choices = [choice for number, choice in enumerate(choices) if choice not in choices[:number]]
    runs: list[Callable[..., Any]] = [runner_of(partial, choice) for choice in choices]
    runs.append(partial.module)
    choices.append([_kept_if(one, False) for one in built])
    own = [partial.examples[0].copied() for _ in runs]
    calls = [lambda run=run, example=example: example.call(run) for run, example in zip(runs, own, strict=True)]
    times = _medians_ms(calls, job)
    fastest = min(times)
    enough = fastest * max(SLOWER, 1.0)
    return next(choice for choice, ms in zip(choices, times, strict=True) if ms <= enough)


def _kept_if(one: BuiltSubgraph, is_kept: bool) -> BuiltSubgraph:
    if is_kept or one.lowered is None:
        return one
    return replace(one, lowered=None, reason="the model as a whole is faster with this subgraph eager")


def runner_of(partial: PartialModel, built: Sequence[BuiltSubgraph]) -> SubgraphRunner:
    """The model with these subgraphs in their places."""
    hosted = [HostedSubgraph(one.subgraph.place, one.lowered) for one in built if one.lowered is not None]
    return SubgraphRunner(partial.module, hosted, controls=partial.controls)
