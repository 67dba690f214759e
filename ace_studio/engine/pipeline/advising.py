"""Adds advice to a result, and the outcome of the advice that the run came from."""

from __future__ import annotations

import importlib.util
import os

import msgspec

from ace_studio.engine.advice import Facts, advise
from ace_studio.engine.targets import report_targets
from ace_studio.records.advice_applied import outcome_of
from ace_studio.records.graph import GraphTable
from ace_studio.records.recipes.recipe import Recipe
from ace_studio.records.results import Result


def with_advice(result: Result, recipe: Recipe, table: GraphTable) -> Result:
    """The result with its advice cards, and the outcome of the card that the recipe was made from."""
    facts = Facts(
        result=result,
        recipe=recipe,
        table=table,
        targets=report_targets(),
        cores=os.cpu_count() or 1,
        has_pruning_library=importlib.util.find_spec("torch_pruning") is not None,
    )
    return msgspec.structs.replace(result, advice=advise(facts), advice_from=outcome_of(recipe.advice_from, result))
