"""Finding the user's line among the frames of a failure."""

import traceback
from pathlib import Path

import torch

from ace_studio.engine.capture.places import find_place
from tests import tiny_models

TORCH = Path(torch.__file__).parent
TINY = tiny_models.__file__


def frame(file: str, line: int) -> traceback.FrameSummary:
    return traceback.FrameSummary(file, line, "forward")


def line_of(text: str) -> int:
    return next(n for n, line in enumerate(Path(TINY).read_text().splitlines(), start=1) if text in line)


def test_the_innermost_user_line_and_its_module_are_found() -> None:
    module = tiny_models.data_dependent().module
    inner, outer = line_of("if x.mean() > 0"), line_of("x = block(x)")
    place = find_place([frame(TINY, outer), frame(TINY, inner), frame(str(TORCH / "_tensor.py"), 5)], module)
    assert (place.line, place.module, place.class_name) == (inner, "blocks.1", "Gate")
    assert place.where == f"{TINY}:{inner}, module blocks.1"
    assert place.source == "if x.mean() > 0:"


def test_without_a_user_line_the_place_is_empty_and_the_model_still_named() -> None:
    place = find_place([frame(str(TORCH / "_tensor.py"), 5)], tiny_models.mlp().module)
    assert place.where == ""
    assert place.class_name == "Sequential"
