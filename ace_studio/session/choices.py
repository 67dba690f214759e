"""Pure functions that change a recipe."""

import glob
import os
from collections.abc import Callable, Collection, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ace_studio.records.entry_choice import USUAL_NAMES, likely_entries
from ace_studio.records.messages import EntryPoint, EntryRole, FileReport
from ace_studio.records.recipes.families import ModelFamily
from ace_studio.records.recipes.file import parse_recipe
from ace_studio.records.recipes.plan import Plan, PlanRule, Precision
from ace_studio.records.recipes.recipe import DecodeChoice, Goal, ModelChoice, Recipe
from ace_studio.records.tensors import DimChoice

_PLACES = (
    (("inputs", "tracing"), "tracing_inputs", (EntryRole.TRACING,)),
    (("calibration", "inputs"), "calibration_inputs", (EntryRole.CALIBRATION, EntryRole.DATA)),
    (("evaluate", "function"), "evaluate", (EntryRole.EVALUATE,)),
)
"""Key of the recipe, the usual name of the callable that belongs there, and the roles that stand in for it."""
_USUAL_DROP = 0.01
_USUAL_SQNR_DB = 20.0
"""What a new model may lose at first: a hundredth of its metric, or a tenth of its outputs' amplitude as noise."""


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
    """Fill in what the file makes clear, as `with_found`, and a first plan if nothing was chosen yet."""
    is_new = recipe == Recipe(model=ModelChoice(source=recipe.model.source, weights=recipe.model.weights))
    recipe = with_found(recipe, report)
    return with_first_plan(recipe) if is_new else recipe


def with_found(recipe: Recipe, report: FileReport) -> Recipe:
    """Fill in what the file makes clear: entry, weights, example inputs, and callables by their roles."""
    if not recipe.model.entry:
        recipe = change(recipe, "model", entry=plausible_entry(report.entries))
    if report.weights and not recipe.model.weights:
        recipe = change(
            recipe, "model", weights=Path(os.path.relpath(report.weights[0], Path(report.path).parent)).as_posix()
        )
    if report.inputs and not recipe.inputs.rows and not recipe.inputs.tracing:
        recipe = change(recipe, "inputs", rows=report.inputs)
    return with_functions(recipe, report.entries)


def with_functions(recipe: Recipe, entries: Sequence[EntryPoint], *, file: str = "") -> Recipe:
    """Fill in the functions for example inputs, calibration and evaluation that are not chosen yet.

    Args:
        recipe: Any recipe.
        entries: What a Python file defines.
        file: That file, as the recipe names it; empty for the model's source.
    """
    for (table, key), usual, roles in _PLACES:
        already_has_inputs = table == "inputs" and bool(recipe.inputs.rows)
        found = _callable_for(usual, roles, entries)
        name = f"{file}:{found}" if file and found else found
        if name and name != recipe.model.entry and not getattr(getattr(recipe, table), key) and not already_has_inputs:
            recipe = change(recipe, table, **{key: name})
    return recipe


def with_first_plan(recipe: Recipe) -> Recipe:
    """The recipe with a limit for what a run may cost, so that it alone gives something.

    With data int8-static is planned everywhere; without, ranges are not known, and the goal finds what needs none.
    """
    named = (recipe.inputs.tracing, recipe.inputs.caught, recipe.calibration.inputs, recipe.calibration.caught)
    plan = Plan(default=Precision.INT8_STATIC) if any(named) else Plan(from_goal=True)
    return _with_goal(replace(recipe, plan=plan), Goal(max_drop=_USUAL_DROP))


def _with_goal(recipe: Recipe, goal: Goal) -> Recipe:
    """The recipe with this goal, which bounds the fidelity if there is no metric to bound."""
    if not (recipe.evaluate.function or recipe.evaluate.metric):
        goal = replace(goal, max_drop=None, min_sqnr_db=_USUAL_SQNR_DB)
    return replace(recipe, goal=goal)


@cache
def _ready_recipe(family: ModelFamily) -> Recipe:
    return parse_recipe(family.recipe_text(), name=family.name)


def with_family(recipe: Recipe, family: ModelFamily, *, inputs: Collection[str] | None = None) -> Recipe:
    """The recipe with the choices of a ready one; the model, its data, the targets and the rest stay.

    How to decode is only taken over if the model's inputs, unless they are unknown, have the names that it needs.
    """
    ready, calibration = _ready_recipe(family), recipe.calibration
    data = {name: getattr(calibration, name) for name in ("inputs", "caught", "mean", "std")}
    decode, needed = ready.measure.decode, (ready.measure.decode.token, *ready.measure.decode.feed)
    if not recipe.measure.decode.token and (inputs is None or set(needed) <= set(inputs)):
        recipe = change(recipe, "measure", decode=decode)
    changed = replace(
        recipe,
        calibration=replace(ready.calibration, **data),
        improve=ready.improve,
        sensitivity=ready.sensitivity,
        plan=ready.plan,
    )
    return _with_goal(changed, ready.goal)


def plausible_entry(entries: Sequence[EntryPoint]) -> str:
    """The entry that is meant, or an empty string if the user has to choose."""
    likely = likely_entries(entries, taken=[usual for _, usual, _ in _PLACES])
    usual = [name for name in USUAL_NAMES if name in likely]
    return usual[0] if usual else likely[0] if len(likely) == 1 else ""


def _callable_for(usual: str, roles: Sequence[EntryRole], entries: Sequence[EntryPoint]) -> str:
    """The callable with the usual name, else the first with one of the roles, the first role first."""
    named = [one.name for one in entries if one.name == usual]
    named += [one.name for role in roles for one in entries if one.role is role]
    return named[0] if named else ""
