"""What an advice card changes, for the window that shows it."""

from msgspec.structs import replace

from ace_studio.records.advice import Advice
from ace_studio.records.recipes.plan import rule_problem
from ace_studio.records.recipes.plan_index import plan_index
from ace_studio.records.recipes.recipe import AdviceOrigin, Recipe
from ace_studio.session.document import Document


def without_origin(recipe: Recipe) -> Recipe:
    """The recipe as if it had not been made from a card."""
    return replace(recipe, advice_from=AdviceOrigin())


def ops_of_advice(card: Advice, document: Document) -> tuple[str, ...]:
    """The ops that new rules of a card are about, in the order of the graph; empty if it is about no ops."""
    graph = document.graph
    rules = card.change.get("plan", {}).get("rules", ()) if graph is not None else ()
    if graph is None or not rules:
        return ()
    index, have = plan_index(graph), {rule.match for rule in document.recipe.plan.rules}
    named = [str(rule.get("match", "")) for rule in rules]
    new = [match for match in named if match not in have and not rule_problem(match)]
    rows = sorted({row for match in new for row in index.rows_of(match)})
    return tuple(graph.op_id[row] for row in rows)


def change_words(card: Advice) -> list[str]:
    """What a card sets, a line per key: ``plan.default = bf16``."""
    lines = []
    for table, values in card.change.items():
        for key, value in values.items():
            if key == "rules":
                lines.append(f"{table}.rules: {len(value)} in all")
            elif value is None:
                lines.append(f"{table}.{key} is removed")
            else:
                shown = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
                lines.append(f"{table}.{key} = {shown}")
    return lines
