"""What a job knows of the sensitivity of its ops: scanned once, used by the search and told in every run."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ace_studio.engine.pipeline.compress.bench import Bench
from ace_studio.engine.pipeline.compress.candidates import Candidate
from ace_studio.engine.pipeline.sensitivity import Sensing, scan_folder, sense, sensitivity_of_ops
from ace_studio.engine.sensitivity import SIMULATED
from ace_studio.records.errors import AceError
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.recipes.recipe import ScanChoice
from ace_studio.records.results import OpReport


def sense_once(bench: Bench, precisions: Sequence[Precision]) -> Sensing:
    """The sensitivity at these precisions; what is known already is not scanned again."""
    if bench.sensing is None:
        bench.sensing = Sensing()
    missing = [one for one in precisions if one in SIMULATED and one not in bench.sensing.noise]
    if not missing or bench.recipe.sensitivity.scan is ScanChoice.OFF:
        return bench.sensing
    found = _sense_or_say_why(bench, missing)
    bench.sensing.noise.update(found.noise)
    bench.sensing.forwards += found.forwards
    bench.sensing.notes = tuple(dict.fromkeys((*bench.sensing.notes, *found.notes)))
    for note in found.notes:
        bench.reporter.warn("sensitivity", note)
    return bench.sensing


def _sense_or_say_why(bench: Bench, precisions: Sequence[Precision]) -> Sensing:
    try:
        return sense(
            bench.captured,
            bench.recipe,
            bench.calibration,
            precisions=precisions,
            reporter=bench.reporter,
            folder=scan_folder(bench.output),
        )
    except AceError:
        raise
    except Exception as error:  # noqa: BLE001 - border: any op of the user's may fail where it is run op by op
        why = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        note = f"the sensitivity of the ops could not be found ({why}); a search takes those that cost little first"
        return Sensing(noise={precision: {} for precision in precisions}, notes=(note,))


def with_sensitivity(bench: Bench, candidate: Candidate, reports: Sequence[OpReport]) -> tuple[OpReport, ...]:
    """The reports with what is known of the sensitivity of each op, and why the search kept some high."""
    known = sensitivity_of_ops(bench.sensing or Sensing(), candidate.plan.precision, bench.captured.table)
    told = []
    for one in reports:
        parts = (candidate.kept.get(one.id, ""), one.reason)
        reason = "; ".join(part for part in parts if part)
        told.append(msgspec.structs.replace(one, sensitivity_db=known.get(one.id), reason=reason))
    return tuple(told)
