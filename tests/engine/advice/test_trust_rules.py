"""Rules about figures that mean little yet, and about a batch that is fixed."""

from __future__ import annotations

import pytest

from ace_studio.engine.advice import advise
from ace_studio.engine.advice.trust_rules import free_the_batch, give_calibration_data
from ace_studio.records.results import (
    Warning,
)
from ace_studio.records.tensors import DimVerdict
from tests.engine.advice.finished_run import (
    HERE,
    applies,
    captured,
    facts,
    scan,
)


@pytest.mark.parametrize(
    ("code", "words"), [("fake-calibration", "made up"), ("calibration-from-tracing", "traced with")]
)
def test_ranges_without_data_are_the_first_card(code, words):
    cards = advise(facts(warnings=(Warning(code=code, what="..."),), sensitivity=scan(5.0, 30.0, 30.0), targets=HERE))
    assert cards[0].kind == "calibration-data" and words in cards[0].why and cards[0].estimated_gain is None
    assert give_calibration_data(facts()) is None


def test_a_fixed_batch_can_be_freed():
    given = facts(capture=captured(DimVerdict.STATIC))
    card = free_the_batch(given)
    assert {str(value) for value in applies(card, given).inputs.dims.values()} == {"dynamic"}
    assert free_the_batch(facts(capture=captured(DimVerdict.DYNAMIC))) is None
    assert free_the_batch(facts(recipe=applies(card, given), capture=captured(DimVerdict.STATIC))) is None
