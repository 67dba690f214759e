import pytest

from ace_studio.sweeps.heat import batch_and_shape


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
