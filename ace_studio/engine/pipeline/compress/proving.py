"""Whether a target computes the model's function at all; how much a precision loses is another question.

The target's exact build (fp32 there) has to give eager's answers to every probe, element by element. A compiled torch
program takes minutes to build twice: there the graph that it was compiled from, run in eager torch, takes the place of
eager.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import torch

from ace_studio.engine import evaluate
from ace_studio.engine.capture.verify import difference
from ace_studio.engine.pipeline.compress.building import lower
from ace_studio.engine.pipeline.compress.candidates import Candidate, make_candidate
from ace_studio.engine.pipeline.compress.culprit import first_wrong
from ace_studio.engine.pipeline.compress.job import CompressionJob
from ace_studio.engine.pipeline.compress.probes import LEAST_SECONDS, Probe, Probes, largest, moved_by
from ace_studio.engine.quantize.fidelity import fidelity_db
from ace_studio.engine.targets.base import Lowered
from ace_studio.engine.targets.partial.lower import SubgraphsLowered
from ace_studio.engine.targets.shared.support import op_place
from ace_studio.records.errors import AceError, ErrorCode, Problem, message_of
from ace_studio.records.messages import Phase
from ace_studio.records.recipes.plan import Plan, Precision
from ace_studio.records.results import RunStatus

KEPT_S = 5.0
"""An exact build that took longer is not kept to be timed: what it is compared with took about as long to build..."""
SHARE = 0.2
"""... unless that is at most this part of what the job took so far: a compiler's build in a long run."""
SAME_DB = 60.0
"""Least fidelity of the subgraphs where Python decides by values: one rounding changes how many boxes there are."""


TWIN_SHARE = 0.02
"""The part of what the job took so far in which one compiled program is compared, beside `LEAST_SECONDS`."""
OF_GPU = 5e-4
"""What products with 10 bits of fraction (TF32) move an output by, as a part of its largest value: GPUs use them."""


@dataclass(frozen=True)
class TargetProof:
    """What was found out about one target."""

    problem: Problem | None = None
    """What it computes otherwise than the model; None if nothing."""
    exact: Lowered | None = None
    """Its exact build, if that is right and was soon built."""
    probes: int = 0
    """How many inputs it was compared on; 0 if it has no exact build."""


def require_alive(job: CompressionJob) -> None:
    """Refuse a model whose outputs change on no input that is tried: all that is built from it would seem exact.

    Raises: AceError(BAD_INPUT).
    """
    answers = [probe.expected for probe in _probes(job).all]
    if fidelity_db(answers, answers) is None:
        raise AceError.of(
            ErrorCode.BAD_INPUT,
            "The model gives the same outputs for every input that was tried",
            why=f"{len(answers)} inputs of other sizes and values were tried; nothing that is built could be verified",
            remedy="Load its weights, or give examples on which its outputs differ.",
            where="[inputs]",
        )


def _probes(job: CompressionJob) -> Probes:
    if job.state.probes is None:
        job.reporter.phase(Phase.VERIFY, "the model itself, on inputs that are chosen to hurt")
        job.state.probes = Probes(job.captured, seconds=seconds_so_far(job))
    return job.state.probes


def prove(job: CompressionJob, candidate: Candidate) -> None:
    """Refuse a candidate whose target does not compute the model's function. Raises: AceError(WRONG_CAPTURE)."""
    assert candidate.lowered is not None
    job.reporter.phase(Phase.VERIFY, f"{candidate.label}: the same function")
    twin, proofs, name = candidate.lowered.twin(), job.state.proofs, candidate.target.name
    if job.captured.first_state:
        return  # an answer depends on the calls before: the examples were compared in their order
    if twin is not None:
        proof = _proof(job, candidate, candidate.lowered, twin=twin)
    elif is_exact(candidate):
        proof = proofs[name] = _proof(job, candidate, candidate.lowered)
    else:
        proof = proofs[name] = proofs.get(name) or _proof_of_exact(job, candidate)
    candidate.note(same_function=proof.problem is None if proof.probes else None, probes=proof.probes)
    if proof.problem is not None:
        raise AceError(proof.problem)


def is_exact(candidate: Candidate) -> bool:
    """Whether all of its ops are at fp32."""
    return candidate.plan.precisions <= {Precision.FP32}


def _proof_of_exact(job: CompressionJob, beside: Candidate) -> TargetProof:
    """That of a build at fp32, which is made for it. What cannot be built proves nothing."""
    started, quiet = time.monotonic(), replace(job, reporter=job.reporter.quiet())  # its warnings concern nobody
    made = make_candidate(beside.target, Plan(default=Precision.FP32), job.captured.table, device=job.captured.device)
    if made.run.status is not RunStatus.OK:
        return TargetProof()
    job.reporter.phase(Phase.LOWER, f"{made.label}, to compare with")
    try:
        made.lowered = lower(quiet, made)
        seconds = time.monotonic() - started
        proof = _proof(job, made, made.lowered)
    except AceError as error:
        if error.problem.code is ErrorCode.CANCELLED:
            raise
        return TargetProof()
    except Exception:  # noqa: BLE001 - border: a runtime's own library may raise anything
        return TargetProof()
    is_kept = seconds <= max(KEPT_S, SHARE * seconds_so_far(job))
    return proof if is_kept else replace(proof, exact=None)


def seconds_so_far(job: CompressionJob) -> float:
    """What the job has taken."""
    return sum(job.reporter.seconds_by_phase().values())


def _proof(
    job: CompressionJob, candidate: Candidate, lowered: Lowered, *, twin: Callable[..., Any] | None = None
) -> TargetProof:
    """Run every probe and compare; with a ``twin`` its answers count, within twice what it differs from eager.

    A search compares each of its compiled programs: what is not given stops there where it takes long.
    """
    probes, compared = _probes(job), 0
    end = time.monotonic() + max(LEAST_SECONDS, TWIN_SHARE * seconds_so_far(job))
    for probe in probes.all:
        job.reporter.check()
        if twin is not None and not probe.is_given and time.monotonic() > end:
            break
        try:
            words = _differs(job, probe, lowered, twin)
        except AceError as error:
            if error.problem.code is not ErrorCode.BAD_INPUT or probe.is_given:
                raise
            continue  # the graph does not claim this size
        if words and not (isinstance(lowered, SubgraphsLowered) and lowered.subgraph_sqnr_db() >= SAME_DB):
            return TargetProof(problem=_problem(job, candidate, probe, words, twin=twin), probes=compared + 1)
        compared += 1
    return TargetProof(exact=lowered, probes=compared)


def _differs(job: CompressionJob, probe: Probe, lowered: Lowered, twin: Callable[..., Any] | None) -> str:
    """In what the answers to a probe differ; empty if rounding explains it."""
    try:
        got = evaluate.flat_outputs(lowered, probe.example)
    except AceError:
        raise
    except Exception as error:  # noqa: BLE001 - border: a runtime's own library may raise anything
        return f"it raises {type(error).__name__}: {message_of(error, limit=200)}"
    expected = probe.expected if twin is None else evaluate.flat_outputs(twin, probe.example)
    if not difference(expected, got):
        return ""
    noise = _probes(job).noise(probe)
    if job.captured.device.type != "cpu":
        noise = [own + OF_GPU * largest(one) for own, one in zip(noise, expected, strict=True)]
    if twin is not None:
        moved = [moved_by(*pair) for pair in zip(probe.expected, expected, strict=True)]
        noise = [max(own, away) for own, away in zip(noise, moved, strict=True)]
    return difference(expected, got, noise=noise)


def _problem(
    job: CompressionJob, candidate: Candidate, probe: Probe, words: str, *, twin: Callable[..., Any] | None
) -> Problem:
    op_id = ""
    source = "this is the runtime at fp32, without any compression, so it is not rounding"
    if twin is not None:
        source = "the graph that it was compiled from gives other numbers in eager PyTorch, so it is not rounding"
    with suppress(Exception):  # what the search runs in the runtime is a help only
        job.reporter.phase(Phase.VERIFY, f"which op of {candidate.run.target} differs")
        (graph,) = job.captured.graphs()
        name, shared = candidate.run.target, job.shared
        op_id = first_wrong(graph.captured, name, probe.example, shared=shared, threads=job.threads)
    table = job.captured.table
    first = f"the first value that differs is that of {table.op[table.op_id.index(op_id)]}; " if op_id else ""
    wide = [leaf for leaf in probe.example.tensors() if leaf.dtype is torch.int64 and leaf.numel()]
    has_wide = any(int(leaf.abs().max()) > torch.iinfo(torch.int32).max for leaf in wide)
    return Problem(
        code=ErrorCode.WRONG_CAPTURE,
        what=f"{candidate.target.label} does not compute what the model does: for {probe.name} {words}",
        why=f"{first}{source}" + ("; the input holds integers that need 64 bits" if has_wide else ""),
        remedy="Use another target for this model.",
        where=op_place(table, op_id) if op_id else "",
    )
