"""The signal-to-noise ratio: known values, and the cases where there is no ratio."""

import math

import pytest
import torch

from ace_studio.engine.quantize.fidelity import SQNR_CAP_DB, sqnr_db


def test_a_tenth_of_noise_is_twenty_decibel():
    reference = torch.ones(100)
    assert sqnr_db([reference], [reference * 1.1]) == pytest.approx(20.0, abs=1e-4)


def test_identical_outputs_get_the_cap():
    assert sqnr_db([torch.ones(3)], [torch.ones(3)]) == SQNR_CAP_DB


def test_the_worst_output_decides():
    good, small = torch.full((5,), 100.0), torch.full((5,), 0.001)
    assert sqnr_db([good, small], [good, small * 2]) == pytest.approx(0.0, abs=1e-6)


def test_a_candidate_that_is_not_finite_is_as_bad_as_can_be():
    assert sqnr_db([torch.ones(2)], [torch.tensor([1.0, math.nan])]) == -SQNR_CAP_DB


def test_places_where_the_reference_is_not_finite_do_not_count():
    reference, candidate = torch.tensor([1.0, -math.inf]), torch.tensor([1.0, -1e9])
    assert sqnr_db([reference], [candidate]) == SQNR_CAP_DB


def test_integers_and_complex_numbers_are_compared_too():
    assert sqnr_db([torch.tensor([1, 2])], [torch.tensor([1, 2])]) == SQNR_CAP_DB
    assert sqnr_db([torch.tensor([1j])], [torch.tensor([-1j])]) < 0


def test_other_shapes_are_a_mistake():
    with pytest.raises(ValueError, match="shape"):
        sqnr_db([torch.ones(2)], [torch.ones(3)])
    with pytest.raises(ValueError, match="outputs"):
        sqnr_db([torch.ones(2)], [])
