"""The sensitivity of ops, from a scan or a run."""

from collections.abc import Sequence
from math import inf

from ace_studio.records.results import OpSensitivity
from ace_studio.session.document import Document


def known_sensitivity(document: Document) -> tuple[OpSensitivity, ...]:
    """The findings of the last scan, else those of the last run."""
    if document.sensitivity is not None:
        return document.sensitivity.ops
    return document.result.sensitivity if document.result is not None else ()


def sensitivity_by_op(found: Sequence[OpSensitivity], precision: str = "") -> dict[str, float]:
    """Op id -> dB of the outputs if only this op is compressed; the lowest over the precisions if none is named."""
    values: dict[str, float] = {}
    for one in found:
        if (not precision or precision == one.precision) and not values.get(one.id, inf) <= one.sqnr_db:
            values[one.id] = one.sqnr_db
    return values
