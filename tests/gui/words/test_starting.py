"""Why no job can start now, as the tooltip of a grey button."""

from __future__ import annotations

from msgspec.structs import replace

from ace_studio.gui.words.starting import why_not
from ace_studio.records.recipes.recipe import ModelChoice, Recipe
from ace_studio.session.document import Activity, Document, EngineState, JobKind

OPENED = Document(recipe=Recipe(model=ModelChoice(source="model.py")))


def test_an_open_model_that_is_trusted_can_start():
    assert why_not(OPENED) == ""


def test_without_a_model_the_tooltip_says_to_open_one():
    assert why_not(replace(OPENED, recipe=Recipe())) == "No model is open. Open a model file or a recipe first"


def test_trust_is_asked_for_before_anything_else():
    assert "Trust comes first" in why_not(replace(OPENED, needs_trust=True, recipe=Recipe()))


def test_a_job_that_runs_is_named():
    busy = replace(OPENED, activity=Activity(state=EngineState.BUSY, verb=JobKind.TRACE))
    assert why_not(busy) == "The engine is busy with a trace. Wait until it is done, or cancel it"
