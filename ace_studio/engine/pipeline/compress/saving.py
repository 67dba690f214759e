"""Writes artifacts, verifies them in fresh processes, and reports every op."""

import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import partial
from pathlib import Path

import psutil
from safetensors import SafetensorError

from ace_studio.engine import evaluate, export
from ace_studio.engine.examples.stored_calls import write_tensors
from ace_studio.engine.flow import BoundPlan, CapturedModel
from ace_studio.engine.pipeline.compress.candidates import Candidate
from ace_studio.engine.pipeline.compress.job import CompressionJob
from ace_studio.engine.pipeline.compress.proving import is_exact
from ace_studio.engine.pipeline.compress.sensitivity import with_sensitivity
from ace_studio.engine.profile.roofline import within
from ace_studio.engine.targets.base import OpActual
from ace_studio.engine.targets.shared.flat_call import tensor_places
from ace_studio.engine.torch_private.operators import foreign_operators
from ace_studio.records.errors import AceError
from ace_studio.records.graph import GraphTable
from ace_studio.records.messages import Phase
from ace_studio.records.private_folder import fault_of, private_folder
from ace_studio.records.results import INPUTS_NAME, OpReport, OpSupport, SupportStatus
from ace_studio.records.safe_file import file_sha256, make_output_folder, written_beside

Proof = Future[int | None]
"""Bytes that the verifying process needed; raises what `export.verify_artifact` raises."""
_POLL_S = 0.1
VERIFIER_BYTES = 1_000_000_000
"""Memory of a fresh process with torch and a runtime, before it has a model."""
_WEIGHT_COPIES = 3
"""Copies of the weights in such a process: as read, as the runtime holds them, packed for its kernels."""


def export_all(job: CompressionJob) -> None:
    """Save and verify what is alive; a candidate whose artifact is wrong has failed.

    Fresh processes prove the artifacts, several at once where there are cores and memory. The runtimes are asked before
    what they do with every op: their times would be too long beside these processes.
    """
    _store_inputs(job)
    for candidate in job.state.alive:
        job.reporter.phase(Phase.EXPORT, f"{candidate.label}, op by op")
        job.guarded(candidate, _report_ops)
    with ThreadPoolExecutor(_verifiers_at_once(job), thread_name_prefix="verify") as pool:
        try:
            proofs = [(candidate, _save_and_begin_proof(job, candidate, pool)) for candidate in job.state.alive]
            for candidate, proof in proofs:
                job.reporter.phase(Phase.EXPORT, candidate.label)
                if proof is not None:
                    job.guarded(candidate, partial(_take_proof, proof=proof))
                job.tell(candidate)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _store_inputs(job: CompressionJob) -> None:
    """Write the call that was measured, so that other devices measure the same one."""
    if job.captured.is_whole and job.state.alive:
        path = job.output / INPUTS_NAME
        with suppress(OSError, SafetensorError, AceError):  # the artifacts, which cannot be written either, report it
            make_output_folder(path.parent, below=job.output)
            write_tensors(path, [job.captured.examples[0].tensors()])


def _verifiers_at_once(job: CompressionJob) -> int:
    """How many fresh processes fit at once, by cores and by free memory; at least one."""
    by_cores = (os.cpu_count() or 1) // job.threads
    each = VERIFIER_BYTES + _WEIGHT_COPIES * (job.state.baseline.size_bytes or 0)
    by_memory = int(psutil.virtual_memory().available) // each
    return max(1, min(by_cores, by_memory))


def _save_and_begin_proof(job: CompressionJob, candidate: Candidate, pool: Executor) -> Proof | None:
    """Write an artifact and start a fresh process that verifies it; None if it could not be written."""
    started: list[Proof] = []
    job.reporter.phase(Phase.EXPORT, candidate.label)
    job.guarded(candidate, lambda job, candidate: started.append(_begin_proof(job, candidate, pool)))
    return started[0] if started else None


def _begin_proof(job: CompressionJob, candidate: Candidate, pool: Executor) -> Proof:
    assert candidate.lowered is not None
    path = save_artifact(job, candidate)
    candidate.note(
        artifact=path.relative_to(job.output).as_posix(),
        artifact_sha256=file_sha256(path) if path.is_file() else "",
        size_bytes=export.artifact_bytes(path),
    )
    proof: Proof = Future()
    if candidate.run.not_run:
        proof.set_result(None)  # there is nothing to run: the target read back what it wrote
        return proof
    # Of their own: the proof writes them to a file in another thread, while a forward may write into its inputs here.
    chosen = [one.copied() for one in (*job.captured.examples[:3], *job.captured.unseen[:2])]
    expected = [evaluate.flat_outputs(candidate.lowered, example) for example in chosen]
    if job.captured.is_whole:
        if options := candidate.target.needed_options(path, chosen[0].tensors(), expected[0]):
            job.reporter.warn(
                "artifact-options",
                f"{candidate.run.artifact} computes as measured only if it is opened with {json.dumps(options)}",
                where=candidate.run.artifact or "",
                options=options,
            )
        return pool.submit(
            export.verify_artifact,
            candidate.target.name,
            path,
            chosen,
            expected=expected,
            places=tensor_places(job.captured),
            threads=job.threads,
            device=job.captured.device,
            reporter=job.reporter.quiet(),
            registers=_registering_source(job, job.captured),
            imports=candidate.target.row.opening_imports,
        )
    proof.set_result(  # the user's module may take part, and must not be called from another thread
        export.verify_subgraphs(
            candidate.target.name,
            path,
            chosen,
            expected=expected,
            captured=job.captured,
            model=_source_of(job),
            threads=job.threads,
            reporter=job.reporter,
        )
    )
    return proof


def save_artifact(job: CompressionJob, candidate: Candidate) -> Path:
    """Write the artifact; if that fails, nothing of it is left, and the space is free for the figures."""
    assert candidate.lowered is not None
    folder = job.folder_of(candidate)
    make_output_folder(folder, below=job.output)  # somebody may have cleaned up since the run began
    temporary = Path(tempfile.gettempdir())
    if not temporary.is_dir() or fault_of(temporary / "new"):  # another user may have made one of its name
        private_folder(temporary)
    try:
        with written_beside(folder) as private:
            private.mkdir()
            within = candidate.lowered.save(private).relative_to(private)
    except BaseException:  # also Ctrl-C; it is raised again
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder / within


def _take_proof(job: CompressionJob, candidate: Candidate, *, proof: Proof) -> None:
    while not proof.done():
        job.reporter.check()
        wait([proof], timeout=_POLL_S)
    candidate.note(peak_memory_bytes=proof.result(), verified=_is_verified(candidate))


def _is_verified(candidate: Candidate) -> bool:
    """Whether it computes the model's function and what its precision loses is known; its file was reloaded."""
    run = candidate.run
    return not run.not_run and run.same_function is not False and (is_exact(candidate) or run.fidelity is not None)


def _source_of(job: CompressionJob) -> export.ModelSource:
    """How another process loads the model again, with the code that ran here and no other."""
    code = tuple(job.loaded.code.values()) if job.loaded.files else None
    return export.ModelSource(recipe=job.recipe, folder=str(Path.cwd()), code=code)


def _registering_source(job: CompressionJob, captured: CapturedModel) -> export.ModelSource | None:
    """Source of the code that registers custom operators; None if there are none, or the source is unknown."""
    names = foreign_operators(captured.program)
    if not names:
        return None
    job.reporter.warn(
        "custom-op",
        f"The exported programs of torch call {', '.join(names[:3])}, which the model's code registers: whoever "
        "opens one must import that code first",
        where=str(job.loaded.source) if job.loaded.files else "",
    )
    return _source_of(job) if job.loaded.files else None


def _report_ops(job: CompressionJob, candidate: Candidate) -> None:
    assert candidate.lowered is not None
    actual = candidate.read_back()
    support = {op.id: op for one in job.capture_report.support if one.target == candidate.target.name for op in one.ops}
    reports = report_ops(job.captured.table, candidate.plan, actual, support=support)
    if (latency := candidate.run.latency_ms) and job.captured.example.shapes() == job.captured.examples[0].shapes():
        reports = within(reports, latency.p50)
    candidate.note(ops=with_sensitivity(job, candidate, reports))


def report_ops(
    table: GraphTable, plan: BoundPlan, actual: Sequence[OpActual], *, support: Mapping[str, OpSupport]
) -> tuple[OpReport, ...]:
    """One report per op row. An op that the runtime does not report is ``unknown``.

    ``support`` holds the ops that are not native to the target; where it calls PyTorch instead, the reason says so.
    """
    by_op = {one.op_id: one for one in actual}
    reports = []
    for row in table.op_rows():
        op_id = table.op_id[row]
        op, seen, other = plan.ops[op_id], by_op.get(op_id), support.get(op_id)
        parts = [
            op.reason if op.is_refused else "",
            seen.reason if seen else "the runtime does not report this op",
            other.instead if other is not None and other.status is SupportStatus.FALLBACK else "",
        ]
        if parts[0] in parts[1]:  # some targets repeat the refusal
            parts[0] = ""
        reports.append(
            OpReport(
                id=op_id,
                op=table.op[row],
                module=table.module[row],
                shape=table.shape[row],
                device=seen.device if seen else table.device[row],
                planned=str(op.requested),
                actual=seen.actual if seen else "unknown",
                latency_ms=seen.latency_ms if seen else None,
                fused_into=seen.fused_into if seen else "",
                reason="; ".join(filter(None, parts)) or op.reason,
            )
        )
    return tuple(reports)
