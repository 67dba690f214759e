"""A saved subgraph takes the calls that it was made for, and no others."""

import pytest
import torch

from ace_studio.engine.subgraphs.run_pieces import Place

PLACE = Place("p0", "frame", tensors=(0,), limits=(((2, 8), (4, None)),), carried=(1,), fixed=((2, "x"),))


@pytest.mark.parametrize("values", [(torch.ones(2, 4), 0, "x"), (torch.ones(8, 400), 3, "x")])
def test_a_call_within_the_bounds_of_the_sizes_fits(values):
    assert PLACE.fits(values)


@pytest.mark.parametrize(
    "values",
    [
        (torch.ones(1, 4), 0, "x"),
        (torch.ones(9, 4), 0, "x"),
        (torch.ones(2, 3), 0, "x"),
        (torch.ones(2, 4, 1), 0, "x"),
        (torch.ones(2, 4), -1, "x"),
        (torch.ones(2, 4), 0, "y"),
    ],
)
def test_other_sizes_and_values_do_not_fit(values):
    assert not PLACE.fits(values)
