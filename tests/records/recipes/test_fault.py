"""How a mistake in a recipe is worded."""

import pytest

from ace_studio.records.recipes.fault import listing_hint, nearest_hint, path_text


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), ""),
        (("goal",), "goal"),
        (("goal", "max_drop"), "[goal] max_drop"),
        (("inputs", "rows", 1, "x", "dtype"), "[inputs] rows[2].x.dtype"),
        (("inputs", "dims", "x.0"), '[inputs] dims."x.0"'),
    ],
)
def test_a_place_is_written_as_in_the_file(path, text):
    assert path_text(path) == text


def test_the_closest_known_word_is_suggested_and_else_all_are_listed():
    assert nearest_hint("exprot", ["export", "fx"]) == "did you mean 'export'?"
    assert nearest_hint("open", ["openvino", "eager"]) == "did you mean 'openvino'?"
    assert nearest_hint("zzz", ["export", "fx"]) == "use one of: export, fx"
    assert listing_hint("exprot", ["export", "fx"]) == "did you mean 'export'? (there are export, fx)"
