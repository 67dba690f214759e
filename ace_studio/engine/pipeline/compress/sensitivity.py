"""The sensitivity of a job's ops: scanned once, used by the search and shown in every run."""

from collections.abc import Sequence

import msgspec

from ace_studio.engine.pipeline.compress.candidates import Candidate
from ace_studio.engine.pipeline.compress.job import CompressionJob
from ace_studio.engine.pipeline.sensitivity import Sensing, scan_folder, sense, sensitivity_of_ops
from ace_studio.engine.sensitivity import SIMULATED
from ace_studio.records.errors import AceError
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.recipes.recipe import ScanChoice
from ace_studio.records.results import OpReport


def sense_once(job: CompressionJob, precisions: Sequence[Precision]) -> Sensing:
    """The sensitivity at these precisions; each is scanned once."""
    if job.state.sensing is None:
        job.state.sensing = Sensing()
    missing = [one for one in precisions if one in SIMULATED and one not in job.state.sensing.noise]
    if not missing or job.recipe.sensitivity.scan is ScanChoice.OFF:
        return job.state.sensing
    found = _sense_or_say_why(job, missing)
    job.state.sensing.noise.update(found.noise)
    job.state.sensing.forwards += found.forwards
    job.state.sensing.notes = tuple(dict.fromkeys((*job.state.sensing.notes, *found.notes)))
    for note in found.notes:
        job.reporter.warn("sensitivity", note)
    return job.state.sensing


def _sense_or_say_why(job: CompressionJob, precisions: Sequence[Precision]) -> Sensing:
    try:
        return sense(
            job.captured,
            job.recipe,
            job.calibration,
            precisions=precisions,
            reporter=job.reporter,
            folder=scan_folder(job.output),
        )
    except AceError:
        raise
    except Exception as error:  # noqa: BLE001 - border: any op of the user's may fail where it is run op by op
        why = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        note = f"the sensitivity of the ops could not be found ({why}); a search takes those that cost little first"
        return Sensing(noise={precision: {} for precision in precisions}, notes=(note,))


def with_sensitivity(job: CompressionJob, candidate: Candidate, reports: Sequence[OpReport]) -> tuple[OpReport, ...]:
    """The reports with the sensitivity of each op, and why the search kept some high."""
    known = sensitivity_of_ops(job.state.sensing or Sensing(), candidate.plan.assigned, job.captured.table)
    shown = []
    for one in reports:
        parts = (candidate.kept.get(one.id, ""), one.reason)
        reason = "; ".join(part for part in parts if part)
        shown.append(msgspec.structs.replace(one, sensitivity_db=known.get(one.id), reason=reason))
    return tuple(shown)
