"""The plan: rules that say which precision every op should have."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable
from enum import StrEnum

import msgspec

from ace_studio.records.by_identity import kept_by_identity


class Precision(StrEnum):
    """How an op computes and what its weights are stored as."""

    FP32 = "fp32"
    """IEEE single: the reference."""
    FP16 = "fp16"
    """IEEE half: 10 bits of mantissa, overflows at 65504."""
    BF16 = "bf16"
    """bfloat16: the range of fp32 with 7 bits of mantissa."""
    INT8_STATIC = "int8-static"
    """8-bit weights per channel and 8-bit activations with ranges from calibration."""
    INT8_DYNAMIC = "int8-dynamic"
    """8-bit weights per channel; activation ranges are computed at every call."""
    INT8_WEIGHT = "int8-weight"
    """8-bit weights, float arithmetic."""
    INT4_WEIGHT = "int4-weight"
    """4-bit weights in groups, float arithmetic."""
    FP8 = "fp8"
    """8-bit floats, on devices that have them."""

    @property
    def needs_calibration(self) -> bool:
        """Whether this precision needs activation ranges from calibration."""
        return self is Precision.INT8_STATIC


FLOATS = (Precision.FP32, Precision.FP16, Precision.BF16)
"""Precisions that can be requested for every op."""

WEIGHT_BITS = {Precision.INT8_WEIGHT: 8, Precision.INT4_WEIGHT: 4}
WEIGHT_ONLY = frozenset(WEIGHT_BITS)
"""Precisions that store weights in integers and compute in floats."""


class WeightGranularity(StrEnum):
    """The granularity of an 8-bit weight: which of its values share one scale."""

    PER_CHANNEL = "per-channel"
    """One scale per output channel: small channels keep their precision."""
    PER_TENSOR = "per-tensor"
    """One scale for the whole weight: some devices support nothing else."""


class ActivationGrid(StrEnum):
    """The 8-bit grid of an activation."""

    AFFINE = "affine"
    """256 values from the smallest to the largest, with a zero point."""
    SYMMETRIC = "symmetric"
    """Symmetric around 0, without a zero point: half of it is unused if values are never negative."""


class Scheme(msgspec.Struct, frozen=True, kw_only=True):
    """The grids of an op at an integer precision; floats ignore it."""

    weights: WeightGranularity = WeightGranularity.PER_CHANNEL
    activations: ActivationGrid = ActivationGrid.AFFINE
    group_size: int = 32
    """Neighbouring weights of one output channel that share a scale, at int8-weight and int4-weight; 0: all of them."""


class PlanRule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule: ops that match get this precision. Later rules win over earlier ones.

    ``match`` is ``module:GLOB`` (dotted path, ``layer1.*`` also matches ``layer1`` itself), ``op:GLOB`` (operator
    name), ``type:GLOB`` (class of the innermost module) or ``id:GLOB`` (op id).
    """

    match: str
    precision: Precision
    weights: WeightGranularity | None = None
    """None: the plan's."""
    activations: ActivationGrid | None = None
    """None: the plan's."""
    group_size: int | None = None
    """None: the plan's."""

    def scheme(self, plan: Plan) -> Scheme:
        """The grids of the ops that it matches: its own, or the plan's where it has none."""
        return Scheme(
            weights=self.weights or plan.weights,
            activations=self.activations or plan.activations,
            group_size=plan.group_size if self.group_size is None else self.group_size,
        )


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The requested precisions. Ops that no rule matches get the default."""

    default: Precision = Precision.FP32
    rules: tuple[PlanRule, ...] = ()
    weights: WeightGranularity = WeightGranularity.PER_CHANNEL
    activations: ActivationGrid = ActivationGrid.AFFINE
    group_size: int = 32
    """As in `Scheme`."""
    rest: Precision = Precision.FP32
    """Fallback of ops that the target cannot run as planned (a softmax has no 8-bit kernel): fp32, fp16 or bf16."""
    from_goal: bool = False
    """No plan was given (a recipe without ``[plan]``): the goal chooses the precisions. Without a goal: fp32."""

    @property
    def label(self) -> str:
        """``int8-static``, or ``int8-static + bf16`` where the rest is not fp32."""
        return str(self.default) if self.rest is Precision.FP32 else f"{self.default} + {self.rest}"

    @property
    def scheme(self) -> Scheme:
        """The grids of ops whose rule sets none."""
        return Scheme(weights=self.weights, activations=self.activations, group_size=self.group_size)

    @property
    def precisions(self) -> frozenset[Precision]:
        """Those of the default and of the rules."""
        return _precisions_of(self.rules) | {self.default}

    @property
    def needs_calibration(self) -> bool:
        """Whether any op may have a precision that needs activation ranges."""
        return any(one.needs_calibration for one in self.precisions)


@kept_by_identity
def _precisions_of(rules: tuple[PlanRule, ...]) -> frozenset[Precision]:
    return frozenset(rule.precision for rule in rules)


class OpPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The plan of one op and the rule that decided it."""

    op_id: str
    precision: Precision
    reason: str
    scheme: Scheme = Scheme()


MATCH_KINDS = ("module", "op", "type", "id")


def rule_problem(match: str) -> str | None:
    """What is wrong with the text of a rule, or None if it is well formed."""
    kind, colon, pattern = match.partition(":")
    if not colon or kind not in MATCH_KINDS:
        return f"'{match}' does not start with one of " + ", ".join(f"'{known}:'" for known in MATCH_KINDS)
    if not pattern.strip():
        return f"'{match}' has nothing after the colon"
    return None


def subject_fits(match: str) -> Callable[[str], bool]:
    """Whether a rule with this text selects a subject: a module path without call numbers, or a name."""
    kind, _, pattern = match.partition(":")
    name = pattern.removesuffix(".*") if kind == "module" else pattern
    if not any(sign in name for sign in "*?["):
        # A plain name, which most rules have: no regular expression is needed.
        return lambda subject: subject == name or (kind == "module" and subject.startswith(f"{name}."))
    patterns = (name, f"{pattern}.*", pattern) if kind == "module" else (name,)
    fits = re.compile("|".join(map(fnmatch.translate, patterns))).match
    return lambda subject: fits(subject) is not None


def plain_path(module: str) -> str:
    """The path of a module without the numbers of its calls: ``b`` for ``b@1``."""
    return ".".join(part.partition("@")[0] for part in module.split(".")) if "@" in module else module


def rule_matches(match: str, *, op_id: str, op: str, module: str, module_type: str) -> bool:
    """Whether the rule's text selects this op."""
    subjects = {"module": plain_path(module), "op": op, "type": module_type, "id": op_id}
    return subject_fits(match)(subjects.get(match.partition(":")[0], ""))
