"""Changes of the plan's rules: reorder, replace, and compress or keep a module by a tick."""

import glob
from enum import StrEnum

from msgspec.structs import replace

from ace_studio.records.recipes.plan import Plan, PlanRule, Precision, plain_path
from ace_studio.records.recipes.plan_index import PlanIndex


class Tick(StrEnum):
    """Whether the ops of a module are compressed."""

    ALL = "all"
    SOME = "some"
    NONE = "none"


def tick(index: PlanIndex, plan: Plan, path: str) -> Tick:
    """Whether a plan compresses the ops in a module (empty: the whole model)."""
    known = index.precisions(plan)
    is_high = {known[row] is Precision.FP32 for row in index.rows_of(module_match(path))}
    return Tick.SOME if len(is_high) == 2 else Tick.NONE if True in is_high else Tick.ALL


def module_match(path: str) -> str:
    """The ``match`` of a rule for a module and everything in it; of every op for the empty path."""
    return f"module:{glob.escape(plain_path(path))}" if path else "module:*"


def op_match(op: str) -> str:
    """The ``match`` of a rule for an operator."""
    return f"op:{glob.escape(op)}"


def type_match(module_type: str) -> str:
    """The ``match`` of a rule for a class of modules."""
    return f"type:{glob.escape(module_type)}"


def with_moved_rule(plan: Plan, index: int, to: int) -> Plan:
    """The plan with one rule at another place in the order."""
    rules = list(plan.rules)
    rules.insert(max(0, min(len(rules) - 1, to)), rules.pop(index))
    return replace(plan, rules=tuple(rules))


def with_changed_rule(plan: Plan, index: int, rule: PlanRule) -> Plan:
    """The plan with one rule replaced in its place."""
    return replace(plan, rules=(*plan.rules[:index], rule, *plan.rules[index + 1 :]))


def with_module(plan: Plan, path: str, precision: Precision | None) -> Plan:
    """A precision for a module and everything in it; None removes its own rules, and those of modules in it.

    For the whole model (an empty path) the default is changed instead, and no rule for a module is left.
    """
    inside = [rule for rule in plan.rules if _is_about(rule.match, path)]
    kept = tuple(rule for rule in plan.rules if rule not in inside)
    if precision is None:
        return replace(plan, rules=kept)
    if not path:
        return replace(plan, default=precision, rules=kept, from_goal=False)
    return replace(plan, rules=(*kept, PlanRule(match=module_match(path), precision=precision)), from_goal=False)


def ticked(plan: Plan, index: PlanIndex, path: str, *, on: bool, precision: Precision) -> Plan:
    """The plan with a module compressed, or kept at fp32, with as few rules as possible.

    Args:
        plan: The plan as it is.
        index: Of the graph.
        path: The module; empty for the whole model.
        on: Whether its ops are to be compressed.
        precision: The precision if only fp32 is left after its own rules are removed.
    """
    bare = with_module(plan, path, None)
    if path and tick(index, bare, path) is (Tick.ALL if on else Tick.NONE):
        return bare
    return with_module(plan, path, precision if on else Precision.FP32)


def _is_about(match: str, path: str) -> bool:
    """Whether a rule is about this module or one inside it, and nothing else."""
    kind, _, pattern = match.partition(":")
    if kind != "module":
        return False
    own = module_match(path).partition(":")[2] if path else ""
    plain = pattern.removesuffix(".*")
    return not path or plain == own or plain.startswith(f"{own}.")
