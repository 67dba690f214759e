"""Runs the sensitivity scan on the recipe's data, reports its progress and stores it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from ace_studio.engine.capture.cache_store import CaptureStore
from ace_studio.engine.flow import AnyCapture, CapturedModel, Example, PartialModel
from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.observers import RangeChoice
from ace_studio.engine.sensitivity import SIMULATED, Noise, Scan, ScanRequest, noise_db
from ace_studio.engine.targets import TARGETS, select_targets
from ace_studio.engine.targets.base import Target
from ace_studio.engine.targets.shared.int8_styles import most_rounding
from ace_studio.records.graph import GraphTable
from ace_studio.records.messages import Phase, SensitivityFound
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.recipes.recipe import Recipe, ScanChoice
from ace_studio.records.results import OpSensitivity

SEARCHED = (Precision.INT8_STATIC, Precision.INT8_DYNAMIC)
"""Scanned precisions if the plan names none."""
_SUBGRAPHS_NOTE = (
    "the model is captured in subgraphs: each op's noise is that at the outputs of its subgraph, because the Python "
    "between the subgraphs has no derivative"
)
_FILE_NOTE = "an ONNX file has no graph of torch that could be differentiated, so nothing was scanned"


@dataclass
class Sensing:
    """The sensitivity of the ops of a captured model, as far as it was scanned."""

    noise: Noise = field(default_factory=dict)
    """Precision -> op id -> noise power relative to the outputs' signal."""
    forwards: float = 0.0
    notes: tuple[str, ...] = ()

    def in_db(self) -> tuple[OpSensitivity, ...]:
        """For the result: the fidelity of the outputs with one op alone at the precision."""
        return tuple(
            OpSensitivity(id=op_id, precision=str(precision), sqnr_db=round(noise_db(noise), 2))
            for precision, row in self.noise.items()
            for op_id, noise in row.items()
        )


Calibration = Callable[[], Sequence[Example]]


def scanned_precisions(recipe: Recipe) -> tuple[Precision, ...]:
    """The precisions that the recipe's plan uses, or that a search for its goal begins with."""
    if recipe.plan.from_goal:
        return SEARCHED
    planned = dict.fromkeys((recipe.plan.default, *(rule.precision for rule in recipe.plan.rules)))
    return tuple(one for one in planned if one in SIMULATED) or SEARCHED


def sense(
    captured: AnyCapture,
    recipe: Recipe,
    calibration: Calibration,
    *,
    precisions: Sequence[Precision],
    reporter: Reporter,
    folder: Path | None,
) -> Sensing:
    """Scan the model, or each of its subgraphs.

    Args:
        captured: The model.
        recipe: ``[sensitivity]`` and the plan's grids.
        calibration: Gives the examples.
        precisions: What to scan.
        reporter: Hears how it goes, and a `SensitivityFound` after every sample.
        folder: Where scans are kept; None keeps none.
    """
    reporter.phase(Phase.SENSITIVITY, "finding which ops disturb the outputs most")
    if not captured.table.op_count or not captured.has_eager_ops:
        reporter.emit(_nothing_found(captured.fingerprint, reporter.job, _FILE_NOTE))
        return Sensing(notes=(_FILE_NOTE,))
    if not captured.is_whole:
        return _sense_subgraphs(captured, recipe, precisions=precisions, reporter=reporter, folder=folder)
    examples = calibration()[: recipe.sensitivity.samples]
    teller = _Teller(captured.fingerprint, reporter, samples=len(examples))
    return _sense_one(captured, recipe, examples, precisions=precisions, teller=teller, folder=folder)


def _nothing_found(fingerprint: str, job: str, note: str) -> SensitivityFound:
    return SensitivityFound(
        job=job,
        fingerprint=fingerprint,
        ops=(),
        samples_done=0,
        samples=0,
        forwards=0.0,
        is_complete=True,
        notes=(note,),
    )


def _sense_subgraphs(
    partial: PartialModel, recipe: Recipe, *, precisions: Sequence[Precision], reporter: Reporter, folder: Path | None
) -> Sensing:
    """Each subgraph by itself, on the calls that it was captured with."""
    whole = Sensing(notes=(_SUBGRAPHS_NOTE,))
    for subgraph in partial.subgraphs:
        examples = subgraph.captured.examples[: recipe.sensitivity.samples]
        teller = _Teller(partial.fingerprint, reporter, samples=len(examples), name=subgraph.id_in_model, before=whole)
        found = _sense_one(subgraph.captured, recipe, examples, precisions=precisions, teller=teller, folder=folder)
        for precision, row in found.noise.items():
            whole.noise.setdefault(precision, {}).update({subgraph.id_in_model(one): row[one] for one in row})
        whole.forwards = max(whole.forwards, found.forwards)
        whole.notes = tuple(dict.fromkeys((*whole.notes, *found.notes)))
    return whole


def _sense_one(
    captured: CapturedModel,
    recipe: Recipe,
    examples: Sequence[Example],
    *,
    precisions: Sequence[Precision],
    teller: _Teller,
    folder: Path | None,
) -> Sensing:
    ranges = RangeChoice(recipe.calibration.observer, percentile=recipe.calibration.percentile)
    request = ScanRequest(
        captured=captured,
        samples=[example.tensors() for example in examples],
        precisions=precisions,
        scheme=recipe.plan.scheme,
        ranges=ranges,
        style=most_rounding(target.int8_style(recipe.plan, ranges) for target in targets_of(recipe)),
        probes=recipe.sensitivity.probes,
        folder=folder,
        is_thorough=recipe.sensitivity.scan is ScanChoice.ON,
    )
    with torch.random.fork_rng(devices=[]):
        scan = Scan(request, teller.reporter)
        scan.run(told=lambda noise: teller.tell(scan, noise))
        found = Sensing(scan.noise(), scan.saved.forwards, scan.saved.notes)
        teller.tell(scan, found.noise)
    return found


def targets_of(recipe: Recipe) -> list[Target]:
    """The targets that may be built; names that do not exist are reported elsewhere."""
    names = [name for name in recipe.targets.names if name == "auto" or name in TARGETS]
    return select_targets(names)


class _Teller:
    """Sends the findings of a scan with the op ids of the whole model."""

    def __init__(
        self,
        fingerprint: str,
        reporter: Reporter,
        *,
        samples: int,
        name: Callable[[str], str] = lambda op_id: op_id,
        before: Sensing | None = None,
    ) -> None:
        self.reporter = reporter
        self._fingerprint = fingerprint
        self._samples = samples
        self._name = name
        self._before = before or Sensing()

    def tell(self, scan: Scan, noise: Noise) -> None:
        """Send the findings of this scan after those of earlier subgraphs."""
        named = {precision: {self._name(one): row[one] for one in row} for precision, row in noise.items()}
        self.reporter.emit(
            SensitivityFound(
                job=self.reporter.job,
                fingerprint=self._fingerprint,
                ops=(*self._before.in_db(), *Sensing(named).in_db()),
                samples_done=scan.saved.samples_done,
                samples=self._samples,
                forwards=round(scan.saved.forwards, 2),
                is_complete=scan.saved.ended,
                notes=scan.saved.notes,
            )
        )


def scan_folder(output: Path | None) -> Path | None:
    """Where scans are kept: beside the captures, or in the output folder if these are not kept."""
    store = CaptureStore.of_user()
    return store.folder if store is not None else output


def sensitivity_of_ops(found: Sensing, plan: Mapping[str, Precision], table: GraphTable) -> dict[str, float]:
    """Op id -> dB at the assigned precision; at the first scanned precision if the op stays high."""
    if not found.noise:
        return {}
    first = next(iter(found.noise))
    shown = {}
    for row in table.op_rows():
        op_id = table.op_id[row]
        precision = plan.get(op_id, first)
        noise = found.noise.get(precision, found.noise[first]).get(op_id)
        if noise is not None:
            shown[op_id] = round(noise_db(noise), 2)
    return shown
