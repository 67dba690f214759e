"""Pure functions that change a recipe."""

from __future__ import annotations

import glob
from collections.abc import Callable, Collection, Sequence
from typing import Any

from msgspec.structs import replace

from ace_studio.records.messages import EntryPoint, FileReport
from ace_studio.records.recipes.plan import PlanRule, Precision
from ace_studio.records.recipes.recipe import DecodeChoice, Recipe
from ace_studio.records.tensors import DimChoice

ENTRY_NAMES = ("make_model", "get_model", "build_model", "create_model", "load_model", "model")
"""Usual names of the function that makes the model, the likeliest first."""
BESIDE_NAMES = {
    "tracing_inputs": ("inputs", "tracing"),
    "calibration_inputs": ("calibration", "inputs"),
    "evaluate": ("evaluate", "function"),
}
"""Callable beside the entry -> where in the recipe its name belongs."""


def table_of(recipe: Recipe, table: str) -> Any:
    """A table of the recipe by its name; None if there is none. ``measure.decode`` is a table in a table."""
    found: Any = recipe
    for name in table.split("."):
        found = getattr(found, name, None)
    return found


def change(recipe: Recipe, table: str, **values: Any) -> Recipe:
    """The recipe with some keys of one of its tables, or of a table in one, replaced."""
    outer, _, name = table.rpartition(".")
    changed = replace(table_of(recipe, table), **values)
    return change(recipe, outer, **{name: changed}) if outer else replace(recipe, **{name: changed})


def with_decode(recipe: Recipe, **values: Any) -> Recipe:
    """The recipe with other choices of how to decode.

    Without an input for the token the other choices have no meaning, and a recipe with them would be invalid.
    """
    changed = change(recipe, "measure.decode", **values)
    return changed if changed.measure.decode.token else change(changed, "measure", decode=DecodeChoice())


SPECIAL_TABLES: dict[str, Callable[..., Recipe]] = {"measure.decode": with_decode}
"""Tables whose keys depend on each other -> the function that changes them."""


def with_dim(recipe: Recipe, name: str, choice: DimChoice) -> Recipe:
    """The choice for one dimension (``x.0``). ``auto`` is the default, so it is not stored."""
    dims = {key: value for key, value in recipe.inputs.dims.items() if key != name}
    if choice is not DimChoice.AUTO:
        dims[name] = choice
    return change(recipe, "inputs", dims=dims)


def with_default_precision(recipe: Recipe, precision: Precision) -> Recipe:
    """The precision of every op that no rule names. A precision chosen by hand ends planning from the goal."""
    return change(recipe, "plan", default=precision, from_goal=False)


def with_rules(recipe: Recipe, matches: Collection[str], precision: Precision | None) -> Recipe:
    """Append one rule per match, where it wins; earlier rules with the same match are removed. None only removes."""
    rules = tuple(rule for rule in recipe.plan.rules if rule.match not in matches)
    if precision is not None:
        rules += tuple(PlanRule(match=match, precision=precision) for match in matches)
    return change(recipe, "plan", rules=rules, from_goal=recipe.plan.from_goal and precision is None)


def op_matches(op_ids: Sequence[str]) -> tuple[str, ...]:
    """The ``match`` of a rule for each of these ops, without duplicates."""
    return tuple(dict.fromkeys(f"id:{glob.escape(op_id)}" for op_id in op_ids))


def prefill(recipe: Recipe, report: FileReport) -> Recipe:
    """Fill in what the file makes clear: entry, example inputs, and the well-known callables beside it."""
    names = {entry.name for entry in report.entries}
    if not recipe.model.entry:
        recipe = change(recipe, "model", entry=plausible_entry(report.entries))
    if report.inputs and not recipe.inputs.rows and not recipe.inputs.tracing:
        recipe = change(recipe, "inputs", rows=report.inputs)
    for name, (table, key) in BESIDE_NAMES.items():
        already_has_inputs = table == "inputs" and bool(recipe.inputs.rows)
        if name in names and not getattr(getattr(recipe, table), key) and not already_has_inputs:
            recipe = change(recipe, table, **{key: name})
    return recipe


def plausible_entry(entries: Sequence[EntryPoint]) -> str:
    """The only plausible entry, or an empty string if the user has to choose.

    A function with a usual name wins, then the only model class that needs no arguments, then the only function
    that needs none.
    """
    usable = [
        entry
        for entry in entries
        if entry.required_arguments == 0 and not entry.name.startswith("_") and entry.name not in BESIDE_NAMES
    ]
    by_name = {entry.name: entry for entry in usable}
    for name in ENTRY_NAMES:
        if name in by_name:
            return name
    modules = [entry.name for entry in usable if entry.is_module]
    functions = [entry.name for entry in usable if entry.kind == "function"]
    for candidates in (modules, functions):
        if len(candidates) == 1:
            return candidates[0]
    return ""
