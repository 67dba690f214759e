"""A model in pieces on any target: each piece is lowered like a model of its own, Python runs between them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from ace_studio.engine.flow import (
    BoundPlan,
    CapturedModel,
    Example,
    PartialModel,
    Piece,
    measured_places,
    tensor_leaves,
)
from ace_studio.engine.quantize.fidelity import sqnr_db
from ace_studio.engine.subgraphs import run_pieces
from ace_studio.engine.subgraphs.run_pieces import HostedPiece, Manifest, PieceRunner, SavedPiece
from ace_studio.engine.targets.base import Lowered, LoweringJob, OpActual, Target
from ace_studio.engine.targets.partial.timing import BuiltPiece, best_together, runner_of, unless_slower
from ace_studio.engine.targets.shared.flat_call import tensor_places
from ace_studio.engine.targets.shared.library_error import library_reason
from ace_studio.records.errors import AceError, ErrorCode

MOST_CALIBRATION_CALLS = 64
"""Calls of one piece that its ranges are found with."""


def lower_pieces(target: Target, partial: PartialModel, job: LoweringJob) -> Lowered:
    """Build every piece on its own; one that the target cannot take, or runs slower than eager, stays eager.

    Args:
        target: What to build for.
        partial: The model in pieces.
        job: As for a whole model; its plan speaks of the ids in ``partial.table``.

    Raises: AceError of the first piece if no piece could be built.
    """
    calls = _PieceCalls(partial, job)
    built, errors = [], []
    for number, piece in enumerate(partial.pieces):
        job.reporter.advance(number / len(partial.pieces), f"piece {piece.name} of {len(partial.pieces)}")
        try:
            lowered = target.lower(_job_of(piece, job, calls))
        except AceError as error:
            if error.problem.code is ErrorCode.CANCELLED:
                raise
            errors.append(error)
            built.append(BuiltPiece(piece, None, f"{error.problem.what}: {error.problem.why}"))
        except Exception as error:  # noqa: BLE001 - border: a runtime's own library may raise anything
            built.append(BuiltPiece(piece, None, library_reason(error)))
            errors.append(AceError.of(ErrorCode.UNSUPPORTED, f"{target.label} cannot build piece {piece.name}"))
        else:
            built.append(unless_slower(piece, lowered))
    if len(errors) == len(built):
        raise errors[0]
    chosen = best_together(partial, built)
    lowered = PiecesLowered(target.name, partial, chosen)
    if all(one.lowered is None for one in chosen):
        job.reporter.warn(
            "pieces-slower",
            f"{target.label}: no piece that could be built at this plan makes the model faster, so every op "
            "stays eager; what is measured is the model as it was",
        )
    elif not lowered.calls_at_work:
        job.reporter.warn(
            "pieces-unused",
            f"{target.label}: pieces were built, but none runs when the model is called with the traced example again; "
            "what is measured is eager",
        )
    return lowered


def _job_of(piece: Piece, job: LoweringJob, calls: _PieceCalls) -> LoweringJob:
    table = piece.captured.table
    ids = {table.op_id[row]: piece.id_in_model(table.op_id[row]) for row in table.op_rows()}
    plan = BoundPlan(
        plan=job.plan.plan,
        precision={own: job.plan.precision[ours] for own, ours in ids.items() if ours in job.plan.precision},
        reason={own: job.plan.reason[ours] for own, ours in ids.items() if ours in job.plan.reason},
        schemes={own: job.plan.schemes[ours] for own, ours in ids.items() if ours in job.plan.schemes},
    )
    folder = job.folder / piece.name
    folder.mkdir(parents=True, exist_ok=True)
    return replace(
        job,
        captured=piece.captured,
        plan=plan,
        calibration=lambda: calls.of(piece),
        folder=folder,
        shared=job.shared.setdefault(f"piece {piece.name}", {}),
    )


class _PieceCalls:
    """The calls that the pieces get while the calibration examples run; found once per job, when a piece asks."""

    def __init__(self, partial: PartialModel, job: LoweringJob) -> None:
        self._partial = partial
        self._job = job

    def of(self, piece: Piece) -> Sequence[Example]:
        """Calls of one piece; those that it was captured with if the examples never reach it."""
        calls: dict[str, list[Example]] = self._job.shared.get("piece calls") or self._record()
        self._job.shared["piece calls"] = calls
        return calls[piece.name] or list(piece.captured.examples)

    def _record(self) -> dict[str, list[Example]]:
        found: dict[str, list[Example]] = {piece.name: [] for piece in self._partial.pieces}

        def heard(piece: Piece) -> Callable[..., Sequence[Tensor]]:
            kept, module = found[piece.name], piece.captured.module

            def call(*tensors: Tensor) -> Sequence[Tensor]:
                if len(kept) < MOST_CALIBRATION_CALLS:
                    kept.append(Example(args=tensors).copied())
                results: Sequence[Tensor] = module(*tensors)
                return results

            return call

        hosted = [HostedPiece(piece.place, heard(piece)) for piece in self._partial.pieces]
        runner = PieceRunner(self._partial.module, hosted, controls=self._partial.controls)
        for example in self._job.calibration():
            self._job.reporter.check()
            example.copied().call(runner)
        return found


class PiecesLowered(Lowered):
    """The model with its built pieces in their places."""

    def __init__(self, target: str, partial: PartialModel, built: Sequence[BuiltPiece]) -> None:
        self._target = target
        self._partial = partial
        self._built = built
        self._runner = runner_of(partial, built)
        partial.example.copied().call(self._runner)  # so that the compiler reads the model now
        self.calls_at_work = self._count_calls()
        """How many calls of places the pieces answer in one call of the model, once it has been read."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it as forward is called."""
        return self._runner(*args, **kwargs)

    def _count_calls(self) -> int:
        before = self._runner.ran
        self._partial.example.copied().call(self._runner)
        return self._runner.ran - before

    def piece_sqnr_db(self) -> float:
        """Fidelity of the worst piece to its eager graph, on the calls that it was captured with; 200 if none is used.

        It tells whether the arithmetic is right where the model's own Python makes decisions by values that differ in
        rounding (sorting, thresholds), so that results of the whole cannot be compared number by number.
        """
        worst = 200.0
        with torch.no_grad():
            for one in self._built:
                for example in one.piece.captured.examples if one.lowered is not None else ():
                    assert one.lowered is not None
                    wanted = tensor_leaves(example.copied().call(one.piece.captured.module))
                    given, places = tensor_leaves(example.copied().call(one.lowered)), measured_places(wanted)
                    worst = min(worst, sqnr_db([wanted[at] for at in places], [given[at] for at in places]))
        return worst

    def read_back(self) -> list[OpActual]:
        """What the target does with each piece, in the ids of the whole model."""
        return [actual for one in self._built for actual in _actuals(one)]

    def save(self, folder: Path) -> Path:
        """Write every piece, what says where they belong, and the file that runs them."""
        folder.mkdir(parents=True, exist_ok=True)
        saved = []
        for one in self._built:
            if one.lowered is not None:
                own = folder / one.piece.name
                own.mkdir(exist_ok=True)
                path = one.lowered.save(own)
                saved.append(
                    SavedPiece(
                        one.piece.place, path.relative_to(folder).as_posix(), tuple(tensor_places(one.piece.captured))
                    )
                )
        manifest = Manifest(
            target=self._target,
            model=type(self._partial.module).__name__,
            pieces=tuple(saved),
            controls=self._partial.controls,
            versions={"torch": torch.__version__},
        )
        manifest.write(folder)
        _save_rest(self._partial.module, [one.piece for one in self._built if one.lowered], folder)
        shutil.copyfile(run_pieces.__file__, folder / "run_pieces.py")
        return folder


def _save_rest(module: nn.Module, pieces: Sequence[Piece], folder: Path) -> None:
    """Write the weights that Python between the pieces needs."""
    inside = {name for piece in pieces for _, name in piece.place.weights}
    paths = tuple(f"{piece.place.module}." for piece in pieces if piece.place.kind == "module")
    rest = {
        name: tensor.detach().cpu().contiguous().clone()
        for name, tensor in module.state_dict().items()
        if isinstance(tensor, Tensor) and name not in inside and not name.startswith(paths)
    }
    if rest:
        save_file(rest, folder / run_pieces.REST)


def _in_model(actual: OpActual, piece: Piece) -> OpActual:
    above = piece.id_in_model(actual.fused_into) if actual.fused_into else ""
    return replace(actual, op_id=piece.id_in_model(actual.op_id), fused_into=above)


def _actuals(one: BuiltPiece) -> list[OpActual]:
    if one.lowered is not None:
        return [_in_model(actual, one.piece) for actual in one.lowered.read_back()]
    captured: CapturedModel = one.piece.captured
    table = captured.table
    device = str(captured.device)
    ids = [one.piece.id_in_model(table.op_id[row]) for row in table.op_rows()]
    return [OpActual(op_id=op_id, actual="fp32", device=device, reason=one.reason) for op_id in ids]
