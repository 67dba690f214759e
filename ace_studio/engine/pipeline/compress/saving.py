"""Artifacts: written, loaded in a fresh process, compared there; and what the runtime says of every op."""

from __future__ import annotations

from pathlib import Path

from ace_studio.engine import evaluate, export
from ace_studio.engine.flow import CapturedModel
from ace_studio.engine.pipeline.compress.bench import Bench
from ace_studio.engine.pipeline.compress.candidates import Candidate
from ace_studio.engine.pipeline.compress.op_reports import report_ops
from ace_studio.engine.pipeline.compress.searching import with_sensitivity
from ace_studio.engine.targets.flat_call import tensor_places
from ace_studio.engine.torch_compat import foreign_operators
from ace_studio.records.messages import Phase


def export_all(bench: Bench) -> None:
    """Save and verify what is alive; a candidate whose artifact is wrong has failed."""
    for candidate in bench.alive:
        bench.reporter.phase(Phase.EXPORT, candidate.label)
        bench.guarded(candidate, _save_and_verify)
        bench.guarded(candidate, _report_ops)
        bench.tell(candidate)


def _save_and_verify(bench: Bench, candidate: Candidate) -> None:
    assert candidate.lowered is not None
    path = candidate.lowered.save(bench.folder_of(candidate))
    candidate.note(artifact=path.relative_to(bench.output).as_posix(), size_bytes=export.artifact_bytes(path))
    chosen = [*bench.captured.examples[:3], *bench.captured.unseen[:2]]
    expected = [evaluate.flat_outputs(candidate.lowered, example) for example in chosen]
    if isinstance(bench.captured, CapturedModel):
        peak_bytes = export.verify_artifact(
            candidate.target.name,
            path,
            chosen,
            expected=expected,
            places=tensor_places(bench.captured),
            threads=bench.threads,
            device=bench.captured.device,
            reporter=bench.reporter,
            registers=_registering_source(bench, bench.captured),
        )
    else:
        peak_bytes = export.verify_pieces(
            candidate.target.name,
            path,
            chosen,
            expected=expected,
            module=bench.captured.module,
            model=export.ModelSource(recipe=bench.recipe, folder=str(Path.cwd())),
            threads=bench.threads,
            reporter=bench.reporter,
        )
    candidate.note(verified=True, peak_memory_bytes=peak_bytes)


def _registering_source(bench: Bench, captured: CapturedModel) -> export.ModelSource | None:
    """Where operators are registered that are none of torch's own; None if there are none, or nobody can tell."""
    names = foreign_operators(captured.program)
    if not names:
        return None
    bench.reporter.warn(
        "custom-op",
        f"The exported programs of torch call {', '.join(names[:3])}, which the model's code registers: whoever "
        "opens one must import that code first",
        where=str(bench.loaded.source) if bench.loaded.files else "",
    )
    return export.ModelSource(recipe=bench.recipe, folder=str(Path.cwd())) if bench.loaded.files else None


def _report_ops(bench: Bench, candidate: Candidate) -> None:
    if candidate.lowered is None:  # the artifact was wrong
        return
    actual = candidate.lowered.read_back()
    support = {op.id: op for one in bench.capture.support if one.target == candidate.target.name for op in one.ops}
    reports = report_ops(bench.captured.table, candidate.plan, actual, support=support)
    candidate.note(ops=with_sensitivity(bench, candidate, reports))
