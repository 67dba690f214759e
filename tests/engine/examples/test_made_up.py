"""Kinds of made-up inputs differ in their numbers, and leave alone what carries meaning."""

import pytest
import torch

from ace_studio.engine.examples.made_up import KINDS, NORMAL, of_kind
from ace_studio.engine.flow import Example

MASK, IDS = torch.ones(2, 5), torch.arange(4)


@pytest.mark.parametrize(
    ("kind", "low", "high", "deviation"),
    [
        (NORMAL, -5, 5, 1.0), ("numbers from -1 to 1", -1, 1, 0.58), ("pixels from 0 to 1", 0, 1, 0.29),
        ("pixels from 0 to 255", 0, 255, 73.6), ("numbers that are mostly zero", -5, 5, 0.31),
        ("numbers a thousand times smaller", -0.005, 0.005, 0.001),
    ],
)  # fmt: skip
def test_every_kind_has_its_range_and_is_the_same_every_time(kind, low, high, deviation):
    assert kind in KINDS
    made = of_kind(kind, Example((torch.randn(2, 3, 32, 32), IDS), {"mask": MASK}))
    x, ids = made.args
    assert low <= float(x.min()) and float(x.max()) <= high
    assert float(x.std()) == pytest.approx(deviation, rel=0.1)
    assert torch.equal(ids, IDS) and torch.equal(made.kwargs["mask"], MASK)
    assert torch.equal(of_kind(kind, Example((torch.randn(2, 3, 32, 32),))).args[0], x)


def test_pixels_are_made_for_pictures_only_and_something_has_to_change():
    for kind, leaf in (("pixels from 0 to 255", torch.randn(2, 8)), (NORMAL, IDS), (NORMAL, MASK)):
        with pytest.raises(ValueError, match=kind):
            of_kind(kind, Example((leaf,)))
