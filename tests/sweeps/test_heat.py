import pytest

from ace_studio.records.sweeps import SweepRow
from ace_studio.sweeps.heat import batch_and_shape, heat_maps


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("x=8x3x32x32", (8, "3x32x32")),
        ("ids=2x16:int64", (2, "16")),
        ('["a=4x2","b=4x3"]', (4, "2")),
        ("x=7", (7, "")),
        ("", None),
        ("x=", None),
    ],
)
def test_batch_and_shape_of_an_axis(word, expected):
    assert batch_and_shape(word) == expected


def test_heat_is_the_time_of_one_sample():
    words = {"x=1x3": 10.0, "x=8x3": 16.0, "x=4x3": 24.0}
    rows = [
        SweepRow(job=word, recipe="net.toml", axes={"shape": word}, latency_ms=latency_ms)
        for word, latency_ms in words.items()
    ]
    (found,) = heat_maps(rows)
    assert {batch: cell.share for batch, (cell,) in found.rows} == {1: 1.0, 4: 0.5, 8: 0.0}
