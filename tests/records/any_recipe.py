"""A hypothesis strategy for every valid recipe."""

from hypothesis import strategies as st

from ace_studio.records.recipes.plan import Plan, PlanRule, Precision
from ace_studio.records.recipes.recipe import (
    ALL_CAPTURE_METHODS,
    METRIC_NAMES,
    CalibrationChoice,
    CaptureChoice,
    CaptureControl,
    ControlKind,
    DecodeChoice,
    EngineChoice,
    EvaluateChoice,
    FinetuneChoice,
    FinetuneMethod,
    Goal,
    Importance,
    InputsChoice,
    MeasureChoice,
    ModelChoice,
    Objective,
    PruneChoice,
    PruneMethod,
    Recipe,
    TargetsChoice,
)
from ace_studio.records.targets import TARGET_ROWS
from ace_studio.records.tensors import DimChoice, TensorSpec

_CHARACTERS = st.characters(codec="utf-8", exclude_characters="\0")
"""A recipe's texts hold no NUL: no path may."""
_identifiers = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True)
_files = (
    st.text(_CHARACTERS, min_size=1, max_size=10).filter(lambda text: "\n" not in text).map(lambda stem: f"{stem}.py")
)
_references = st.one_of(st.just(""), _identifiers, st.tuples(_files, _identifiers).map(":".join))
_names = st.text(_CHARACTERS, min_size=1, max_size=8)
_positive = st.floats(min_value=1e-9, max_value=1e12)


def _specs() -> st.SearchStrategy[TensorSpec]:
    return st.builds(
        TensorSpec,
        shape=st.lists(st.integers(0, 10_000), min_size=1, max_size=4).map(tuple),
        dtype=st.sampled_from(["float32", "int64", "bool", "bfloat16"]),
        values=st.one_of(st.sampled_from(["random", "zeros", "ones", "range"]), _names.map(lambda name: f"{name}.npy")),
    )


@st.composite
def _inputs(draw: st.DrawFn) -> InputsChoice:
    if draw(st.booleans()):
        return InputsChoice(tracing=draw(_references))
    names = draw(st.lists(_names, min_size=1, max_size=3, unique=True))
    rows = draw(st.lists(st.fixed_dictionaries({name: _specs() for name in names}), min_size=1, max_size=3))
    ranks = {name: len(rows[0][name].shape) for name in names}
    dims = {
        f"{name}.{draw(st.integers(0, ranks[name] - 1))}": draw(st.sampled_from(DimChoice))
        for name in draw(st.lists(st.sampled_from(names), unique=True))
    }
    return InputsChoice(rows=tuple(rows), dims=dims)


_rules = st.builds(
    PlanRule,
    match=st.tuples(st.sampled_from(["module", "op", "type", "id"]), _names.filter(str.strip)).map(":".join),
    precision=st.sampled_from(Precision),
)
_data = _identifiers | st.sampled_from(["held out.npz", "../data/eval.safetensors", "eval.pt"])
_decodings = st.just(DecodeChoice()) | st.builds(
    DecodeChoice,
    token=_identifiers,
    logits=st.sampled_from(["0", "logits"]),
    feed=st.dictionaries(st.sampled_from(["cache", "past.0", "a b"]), st.sampled_from(["1", "1.0"]), max_size=3),
    position=st.sampled_from(["", "position"]),
    tokens=st.integers(2, 512),
)
_controls = st.builds(CaptureControl, function=_identifiers, treat_as=st.sampled_from(ControlKind))


def recipes() -> st.SearchStrategy[Recipe]:
    """Any recipe that is valid."""
    return st.builds(
        Recipe,
        model=st.builds(ModelChoice, source=_names, entry=_references, weights=st.text(_CHARACTERS, max_size=8)),
        inputs=_inputs(),
        capture=st.builds(
            CaptureChoice,
            rungs=st.lists(st.sampled_from(ALL_CAPTURE_METHODS), min_size=1, unique=True).map(tuple),
            controls=st.lists(_controls, max_size=3).map(tuple),
            time_limit_s=_positive,
            batch_only=st.booleans(),
            cache=st.booleans(),
        ),
        calibration=st.builds(CalibrationChoice, inputs=_references, samples=st.integers(1, 10**6)),
        evaluate=st.one_of(
            st.builds(EvaluateChoice, function=_references, higher_is_better=st.booleans()),
            st.builds(
                EvaluateChoice,
                metric=st.sampled_from(METRIC_NAMES),
                data=_data,
                output=st.text(_CHARACTERS, max_size=4),
            ),
        ),
        plan=st.builds(Plan, default=st.sampled_from(Precision), rules=st.lists(_rules, max_size=3).map(tuple)),
        goal=st.builds(
            Goal,
            max_drop=st.none() | st.floats(0, 0.999),
            min_sqnr_db=st.none() | st.floats(-100, 200),
            max_size_mb=st.none() | _positive,
            max_latency_ratio=st.none() | _positive,
            optimize=st.sampled_from(Objective),
        ),
        engine=st.just(EngineChoice())
        | st.builds(
            EngineChoice,
            host=st.sampled_from(["user@box", "10.0.0.1", "[::1]", "gpu-1.lan"]),
            python=st.sampled_from(["", "~/torch env/bin/python"]),
            files=st.lists(st.sampled_from(["*.npz", "**/*.json"]), max_size=2).map(tuple),
        ),
        measure=st.builds(
            MeasureChoice,
            threads=st.just("all") | st.integers(1, 512),
            rounds=st.integers(1, 10_000),
            device=st.sampled_from(["auto", "cpu", "cuda", "cuda:1"]),
            profile=st.booleans(),
            batches=st.lists(st.integers(1, 512), max_size=3).map(tuple),
            decode=_decodings,
        ),
        targets=st.builds(
            TargetsChoice, names=st.lists(st.sampled_from(["auto", *TARGET_ROWS]), min_size=1, unique=True).map(tuple)
        ),
        prune=st.builds(
            PruneChoice,
            method=st.sampled_from(PruneMethod),
            amount=st.floats(0.01, 0.99),
            pattern=st.sampled_from(["2:4", "1:2", "4:8"]),
            importance=st.sampled_from(Importance),
            ignore=st.lists(st.sampled_from(["module:head", "type:Linear"]), max_size=2).map(tuple),
            round_to=st.integers(1, 64),
        ),
        finetune=st.builds(
            FinetuneChoice,
            method=st.sampled_from([FinetuneMethod.NONE, FinetuneMethod.DISTILL, FinetuneMethod.QAT]),
            data=_references,
            epochs=st.integers(1, 100),
            learning_rate=st.floats(1e-9, 1.0),
            held_out=st.floats(0.01, 0.99),
            seed=st.integers(0, 10**6),
            max_seconds=_positive,
        ),
    )
