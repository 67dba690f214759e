"""The search for a goal, with candidates that are really built: few of them, the reasons told, nothing built twice."""

from types import SimpleNamespace

import msgspec
import pytest
import torch
from torch import nn

from ace_studio.engine.capture import capture_model
from ace_studio.engine.flow import DataSources, Example, LoadedModel
from ace_studio.engine.improve import Improved
from ace_studio.engine.pipeline.compress.choosing import conclude
from ace_studio.engine.pipeline.compress.job import CompressionJob
from ace_studio.engine.pipeline.compress.search import evaluation, variants
from ace_studio.engine.pipeline.compress.search import run as searching
from ace_studio.engine.pipeline.compress.search.evaluation import EvaluatedPlan, PlanEvaluator
from ace_studio.engine.pipeline.compress.search.run import GoalSearch
from ace_studio.engine.pipeline.compress.search.variants import METHODS_TO_TRY, SearchVariant
from ace_studio.engine.pipeline.compress.sensitivity import with_sensitivity
from ace_studio.engine.progress import Reporter
from ace_studio.engine.targets import TARGETS
from ace_studio.records.recipes.plan import Plan, Precision, WeightGranularity
from ace_studio.records.recipes.recipe import Goal, ImproveChoice, ImproveMethod, Objective, Recipe
from ace_studio.records.results import OpReport, RunStatus, SearchStep

TARGET = TARGETS["openvino"]
pytestmark = pytest.mark.skipif(not TARGET.available().ok, reason="OpenVINO is not installed")
PER_TENSOR = Plan(default=Precision.INT8_STATIC, weights=WeightGranularity.PER_TENSOR)


class Chain(nn.Module):
    """Linear layers; two of them have a channel that is far larger than the others."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(6))
        with torch.no_grad():
            self.layers[1].weight[3] *= 60
            self.layers[4].weight[5] *= 25

    def forward(self, x):
        for layer in self.layers:
            x = x + torch.tanh(layer(x))
        return x


def _random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = Chain().eval()
    folder = tmp_path_factory.mktemp("model")
    loaded = LoadedModel(
        module=module,
        source=folder,
        sha256="",
        data=DataSources(calibration=lambda: [(_random(16, 64, seed=seed),) for seed in range(4)]),
    )
    with torch.no_grad():
        captured, report = capture_model(
            loaded,
            [Example((_random(2, 64),)), Example((_random(32, 64, seed=9),))],
            Recipe(),
            device=torch.device("cpu"),
            reporter=Reporter(),
        )
    return loaded, captured, report


def _job(model, output, recipe):
    loaded, captured, report = model
    return CompressionJob.of(loaded, captured, report, recipe=recipe, output=output, reporter=Reporter())


def _searched(model, output, recipe):
    job = _job(model, output, recipe)
    with torch.no_grad():
        GoalSearch(job).run([TARGET])
    return job


def _recipe(plan=PER_TENSOR, **goal):
    return Recipe(plan=plan, goal=Goal(**goal))


FOR_30_DB = _recipe(min_sqnr_db=30.0, optimize=Objective.SIZE)


@pytest.fixture(scope="module")
def searched(model, tmp_path_factory):
    return _searched(model, tmp_path_factory.mktemp("out"), FOR_30_DB)


def test_the_ops_that_ruin_the_model_are_found_and_kept_high_with_the_reason(model, searched):
    job = searched
    assert job.state.search[0].kept_high == 0
    assert not job.state.search[0].meets
    mixed = [step for step in job.state.search if step.kept_high]
    assert mixed
    assert len(job.state.search) <= 6
    best = min((step for step in mixed if step.meets), key=lambda step: step.kept_high)
    assert best.sqnr_db >= 30.0
    table = model[1].table
    modules = [table.module[table.op_id.index(rule.match.removeprefix("id:"))] for rule in best.rules]
    assert modules[0] == "layers.1"
    candidate = job.state.candidates[best.run]
    first = best.rules[0].match.removeprefix("id:")
    assert candidate.kept[first].startswith(f"kept at {best.high}: int8-static would save ")
    assert candidate.kept[first].endswith(" dB; the goal needs 30.0 dB")


def test_what_the_search_knows_stands_at_every_op_that_was_scanned(searched):
    job = searched
    # Ops that are fastest at fp32 on this machine are kept in every mixture; the reason asked for is another one.
    candidate, op_id = next(
        (one, op_id)
        for one in job.state.candidates
        for op_id, reason in one.kept.items()
        if reason.startswith("kept at")
    )
    bare = OpReport(id=op_id, op="", module="", shape="", device="cpu", planned="", actual="", reason="it ran")
    (told,) = with_sensitivity(job, candidate, [bare])
    assert told.reason == f"{candidate.kept[op_id]}; it ran"
    assert told.sensitivity_db is not None


def test_a_fidelity_that_not_even_fp32_has_is_out_of_reach_and_that_is_proven(model, tmp_path):
    job = _searched(model, tmp_path, _recipe(min_sqnr_db=195.0))
    assert len(job.state.search) <= 4
    assert job.state.search[-1].low == "fp32"
    assert any("all ops at fp32 miss the goal too: the fidelity is" in note for note in job.state.search_notes)
    assert [one for one in job.state.candidates if one.lowered is not None]


def test_a_size_below_that_of_all_low_is_out_of_reach(model, tmp_path):
    job = _searched(model, tmp_path, Recipe(goal=Goal(max_size_mb=0.0001, min_sqnr_db=20.0)))
    assert not any(step.meets for step in job.state.search)
    assert not any(step.kept_high for step in job.state.search)
    assert any("the smallest of" in note for note in job.state.search_notes)


def test_a_latency_that_nothing_has_is_out_of_reach_without_keeping_ops_high(model, tmp_path):
    job = _searched(model, tmp_path, Recipe(goal=Goal(max_latency_ratio=1e-6)))
    assert not any(step.meets for step in job.state.search)
    assert not any(step.kept_high for step in job.state.search)
    assert {step.low for step in job.state.search} >= {"int8-static", "fp32"}


@pytest.mark.slow
def test_the_most_accurate_within_a_size_has_as_many_ops_high_as_fit(model, tmp_path):
    sizes = _searched(model, tmp_path / "sizes", _recipe(min_sqnr_db=195.0)).state.search
    low, full = sizes[0].size_bytes, sizes[-1].size_bytes
    limit = (low + 0.6 * (full - low)) / 1e6
    recipe = _recipe(max_size_mb=limit, optimize=Objective.ACCURACY)
    job = _searched(model, tmp_path / "search", recipe)
    best = max((step for step in job.state.search if step.meets), key=lambda step: step.sqnr_db)
    assert best.kept_high > 0
    assert best.size_bytes <= limit * 1e6
    assert best.sqnr_db > sizes[0].sqnr_db + 10.0


def test_a_search_that_runs_again_builds_only_what_it_chose(model, searched, monkeypatch):
    first = searched
    built = []
    real = evaluation.try_plan
    monkeypatch.setattr(evaluation, "try_plan", lambda *given, **named: built.append(given[2]) or real(*given, **named))
    second = _searched(model, first.output, FOR_30_DB)
    assert all(step.reused for step in second.state.search)
    assert [step.kept_high for step in second.state.search] == [step.kept_high for step in first.state.search]
    alive = [one for one in second.state.candidates if one.lowered is not None]
    assert 1 <= len(alive) == len(built) < len(second.state.search)
    assert all(one.run.sqnr_db >= 30.0 for one in alive)


def test_what_was_only_a_step_is_dropped_and_the_result_holds_all_of_it(searched):
    job = searched
    result = conclude(job).result
    assert result.search == tuple(job.state.search)
    assert len(result.front) >= 2
    assert any(not point.built for point in result.front)
    sizes, fidelities = zip(*((one.predicted_bytes, one.predicted_db or 999.0) for one in result.front), strict=True)
    assert list(sizes) == sorted(sizes)
    assert list(fidelities) == sorted(fidelities)
    # What stands beside int8 depends on the times of this machine: fp32, or bf16 where that is no slower.
    assert all([choice.precision for choice in region.choices][-1] in {"fp32", "bf16"} for region in result.regions)
    assert len({op_id for region in result.regions for op_id in region.ops}) >= 6
    assert "int8-static" in {one.precision for one in result.sensitivity}
    assert all(
        run.status is RunStatus.DROPPED
        for run, one in zip(result.runs, job.state.candidates, strict=True)
        if not one.lowered
    )
    assert {point.run for point in result.pareto} == set(range(len(result.runs)))
    assert msgspec.json.decode(msgspec.json.encode(result))["search"][0]["target"] == "openvino"


def test_floats_of_16_bits_beside_8_bit_products_are_a_variant_where_there_is_much_besides_products(model, tmp_path):
    loaded, captured, report = model
    job = _job(model, tmp_path, _recipe(Plan(from_goal=True), min_sqnr_db=20.0))
    assert {variant.plan.rest for variant in variants.variants_of(job, TARGET)} == {Precision.FP32}
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, activation="gelu").eval()
    with torch.no_grad():
        captured, report = capture_model(
            LoadedModel(module=nn.Sequential(layer, layer), source=None, sha256=""),
            [Example((_random(2, 4, 16),))],
            Recipe(),
            device=torch.device("cpu"),
            reporter=Reporter(),
        )
    job = _job((loaded, captured, report), tmp_path, _recipe(Plan(from_goal=True), min_sqnr_db=20.0))
    names = [variant.name for variant in variants.variants_of(job, TARGET)]
    if TARGET.precision_problem(Precision.BF16):
        assert "openvino int8-static + bf16" not in names
    else:
        assert "openvino int8-static + bf16" in names


class Unequal(nn.Module):
    """Two layers around a ReLU; some channels between them are a hundred times larger than the others."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(32, 32), nn.Linear(32, 32)
        with torch.no_grad():
            scale = torch.where(torch.arange(32) % 8 == 0, 100.0, 1.0)
            self.first.weight *= scale[:, None]
            self.first.bias *= scale
            self.second.weight /= scale

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


@pytest.fixture(scope="module")
def unequal(tmp_path_factory):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = Unequal().eval()
    loaded = LoadedModel(
        module=module,
        source=tmp_path_factory.mktemp("unequal"),
        sha256="",
        data=DataSources(calibration=lambda: [(_random(8, 32, seed=seed),) for seed in range(4)]),
    )
    with torch.no_grad():
        captured, report = capture_model(
            loaded, [Example((_random(8, 32),))], Recipe(), device=torch.device("cpu"), reporter=Reporter()
        )
    return loaded, captured, report


def test_weights_are_improved_before_ops_stay_high_because_that_costs_no_time(unequal, tmp_path):
    job = _searched(unequal, tmp_path, _recipe(min_sqnr_db=30.0))
    plain, better = job.state.search
    assert (plain.improved, plain.meets) == ((), False)
    assert "equalize" in better.improved
    assert better.kept_high == 0
    assert better.meets
    assert any(one.method == "equalize" and one.kept for one in job.improvements.reports)
    assert [one.run.status for one in job.state.candidates] == [RunStatus.DROPPED, RunStatus.OK]


def test_a_search_that_may_not_improve_weights_keeps_ops_high(unequal, tmp_path):
    recipe = msgspec.structs.replace(_recipe(min_sqnr_db=30.0), improve=ImproveChoice(by_search=False))
    job = _searched(unequal, tmp_path, recipe)
    assert not any(step.improved for step in job.state.search)
    assert any(step.meets and (step.kept_high or step.low != "int8-static") for step in job.state.search)


def test_improved_weights_are_built_again_by_the_search_that_runs_again(unequal, tmp_path):
    _searched(unequal, tmp_path, _recipe(min_sqnr_db=30.0))
    job = _searched(unequal, tmp_path, _recipe(min_sqnr_db=30.0))
    assert [step.reused for step in job.state.search] == [True, True]
    (built,) = job.state.candidates
    assert built.run.sqnr_db >= 30.0


class PreparedEvaluator(PlanEvaluator):
    """Answers with prepared figures for every variant with all ops low."""

    def __init__(self, job, figures):
        super().__init__(job)
        self._figures = figures

    def variant(self, variant):
        ratio, fidelity = self._figures[variant.name]
        step = SearchStep(
            target=variant.target.name,
            low=variant.name,
            sqnr_db=fidelity,
            latency_ratio=ratio,
            size_bytes=1,
            meets=fidelity >= 30.0,
        )
        self._plans[variant.name] = EvaluatedPlan(step, variant, variant.plan)
        return step


@pytest.mark.parametrize(("learned_db", "kept"), [(24.0, True), (9.0, False)])
def test_learned_rounding_that_the_built_model_does_not_gain_by_is_taken_back(
    model, tmp_path, monkeypatch, learned_db, kept
):
    search = GoalSearch(_job(model, tmp_path, _recipe(Plan(from_goal=True), min_sqnr_db=30.0)))
    built = []

    def evaluate(variant):
        built.append(variant.methods)
        fidelity = learned_db if ImproveMethod.LEARNED_ROUNDING in variant.methods else 15.0
        return SearchStep(target="openvino", low="int4-weight", sqnr_db=fidelity, latency_ratio=0.5, size_bytes=1)

    monkeypatch.setattr(search, "_evaluate_all_low", evaluate)
    monkeypatch.setattr(search._job.improvements, "methods_that_help", lambda plan, methods: methods)
    variant = SearchVariant(TARGET, Plan(default=Precision.INT4_WEIGHT))
    step = SearchStep(target="openvino", low="int4-weight", sqnr_db=10.0, latency_ratio=0.5, size_bytes=1)
    ((better, its),) = search._with_better_weights([(variant, step)])
    assert (ImproveMethod.LEARNED_ROUNDING in better.methods) is kept
    assert ImproveMethod.GPTQ in better.methods
    assert its.sqnr_db == (learned_db if kept else 15.0)
    assert len(built) == (1 if kept else 2)


@pytest.mark.parametrize(("ratio", "known", "tried"), [(0.49, True, True), (0.49, False, False), (0.51, True, False)])
def test_weights_that_another_target_gained_by_are_tried_on_one_that_is_hardly_faster(
    model, tmp_path, monkeypatch, ratio, known, tried
):
    search = GoalSearch(_job(model, tmp_path, _recipe(Plan(from_goal=True), min_sqnr_db=30.0)))
    plan = Plan(default=Precision.INT8_STATIC)
    best = SearchStep(target="openvino", low="int8-static", sqnr_db=31.0, latency_ratio=0.5, size_bytes=1, meets=True)
    search._evaluator._plans["best"] = EvaluatedPlan(best, SearchVariant(TARGET, plan), plan)
    built = []

    def evaluate(variant):
        built.append(variant.methods)
        return SearchStep(
            target="eager", low="int8-static", sqnr_db=31.0, latency_ratio=ratio, size_bytes=1, meets=True
        )  # fmt: skip

    monkeypatch.setattr(search, "_evaluate_all_low", evaluate)
    monkeypatch.setattr(search, "_mix", lambda *_: None)
    monkeypatch.setattr(search._job.improvements, "methods_that_help", lambda plan, methods: methods)
    if known:
        search._job.improvements._found[plan, METHODS_TO_TRY[plan.default]] = Improved()
    step = SearchStep(target="eager", low="int8-static", sqnr_db=29.0, latency_ratio=ratio, size_bytes=1)
    search._search_target([(SearchVariant(TARGETS["eager"], plan), step)])
    assert built == ([METHODS_TO_TRY[Precision.INT8_STATIC]] if tried else [])
    assert bool(search._job.state.search_notes) is not tried


class WatchedSearch(GoalSearch):
    """A search that notes what it would evaluate after all ops low."""

    def __init__(self, job, figures):
        super().__init__(job)
        self._evaluator = PreparedEvaluator(job, figures)
        self.searched, self.floats = [], []

    def _mix(self, own, least):
        self.searched.append([variant.name for variant, _ in own])

    def _try_floats(self, target, *, all_of_them=False):
        self.floats.append(target.name)
        return []


def _watched(model, output, monkeypatch, firsts):
    names = list(dict.fromkeys(name.partition(" ")[0] for name in firsts))
    targets = [TARGETS[name] for name in names]

    def variants(_, target):
        lows = [name.partition(" ")[2] for name in firsts if name.startswith(target.name)]
        return [SearchVariant(target, Plan(default=Precision(low))) for low in lows]

    monkeypatch.setattr(searching, "variants_of", variants)
    recipe = Recipe(goal=Goal(min_sqnr_db=30.0), improve=ImproveChoice(by_search=False))
    search = WatchedSearch(_job(model, output, recipe), firsts)
    search._cheapest(targets)
    return search


def test_a_variant_that_is_slower_all_low_than_what_meets_the_goal_elsewhere_is_left_out(model, tmp_path, monkeypatch):
    firsts = {
        "onnxruntime int8-static": (0.5, 20.0),
        "onnxruntime int8-dynamic": (0.6, 22.0),
        "openvino int8-static": (0.2, 35.0),
        "openvino int8-dynamic": (0.1, 25.0),
    }
    search = _watched(model, tmp_path, monkeypatch, firsts)
    assert search.searched == [["openvino int8-static", "openvino int8-dynamic"]]
    assert search.floats == []
    ((reason, names),) = search._job.state.search_notes.items()
    assert reason.startswith("with all ops low it is no better than openvino")
    assert names == ["onnxruntime int8-static", "onnxruntime int8-dynamic"]


def test_what_promises_most_is_searched_first_and_floats_are_tried_where_nothing_meets_the_goal(
    model, tmp_path, monkeypatch
):
    firsts = {"onnxruntime int8-static": (0.5, 20.0), "openvino int8-static": (0.2, 15.0)}
    search = _watched(model, tmp_path, monkeypatch, firsts)
    assert search.searched == [["openvino int8-static"], ["onnxruntime int8-static"]]
    assert search.floats == ["onnxruntime", "openvino"]


def _exact(model, output, monkeypatch, firsts, **goal):
    search = _watched(model, output, monkeypatch, {name: (ratio, 35.0) for name, ratio in firsts.items()})
    search._goal = Goal(min_sqnr_db=30.0, **goal)
    tried = []
    monkeypatch.setattr(search._evaluator, "uniform", lambda target, precision: tried.append((target.name, precision)))
    search._try_what_is_exact([TARGETS[name] for name in ("eager", "onnxruntime", "openvino")])
    return tried


def test_fp32_is_evaluated_where_the_best_plans_run_and_the_original_where_they_are_hardly_faster(
    model, tmp_path, monkeypatch
):
    fast = {"onnxruntime int8-static": 0.5, "openvino int8-static": 0.2}
    assert _exact(model, tmp_path, monkeypatch, fast) == [("openvino", Precision.FP32)]
    slow = {"onnxruntime int8-static": 0.9, "openvino int8-static": 0.95}
    targets = ["eager", "onnxruntime", "openvino"]
    assert _exact(model, tmp_path, monkeypatch, slow) == [(name, Precision.FP32) for name in targets]


def test_fp32_is_not_evaluated_for_its_speed_where_size_is_wanted_or_where_it_would_be_too_large(
    model, tmp_path, monkeypatch
):
    firsts = {"openvino int8-static": 0.9}
    assert _exact(model, tmp_path, monkeypatch, firsts, optimize=Objective.SIZE) == []
    assert _exact(model, tmp_path, monkeypatch, firsts, max_size_mb=-1.0) == []


def test_fp32_stays_beside_three_plans_that_are_as_fast(model, tmp_path):
    search = GoalSearch(_job(model, tmp_path, _recipe(Plan(from_goal=True), min_sqnr_db=30.0)))
    kept = []
    for index, precision in enumerate(("int8-static", "int8-dynamic", "bf16", "fp16", "fp32")):
        plan = Plan(default=Precision(precision))
        step = SearchStep(target="openvino", low=precision, latency_ratio=0.5 + index / 100, sqnr_db=40.0, meets=True)
        search._evaluator._plans[precision] = EvaluatedPlan(step, SearchVariant(TARGET, plan), plan)
    search._evaluator.keep_only = lambda _, plans: kept.extend(one.step.low for one in plans)
    search._keep_only_the_best(TARGET)
    assert kept == ["int8-static", "int8-dynamic", "bf16", "fp32"]


def _variant(low, rest, *, has_one_float=True):
    target = SimpleNamespace(row=SimpleNamespace(has_one_float=has_one_float))
    return SearchVariant(target, Plan(default=low, rest=rest))


@pytest.mark.parametrize(
    ("rest", "highs", "has_one_float", "is_same"),
    [
        (Precision.FP32, [Precision.BF16], True, True),
        (Precision.BF16, [Precision.BF16], True, False),
        (Precision.FP32, [Precision.FP32], True, False),
        (Precision.FP32, [Precision.BF16, Precision.FP32], False, False),
        (Precision.FP32, [], True, False),
    ],
)
def test_where_all_floats_have_one_type_a_mixture_is_built_for_one_rest_of_the_plan(
    rest, highs, has_one_float, is_same
):
    variant = _variant(Precision.INT8_STATIC, rest, has_one_float=has_one_float)
    assert GoalSearch._has_same_builds(variant, highs, [Precision.FP32, Precision.BF16]) is is_same
    assert not GoalSearch._has_same_builds(variant, highs, [Precision.FP32])


@pytest.mark.parametrize(("bf16_ratio", "has_one_float"), [(0.5, True), (0.99, True), (0.5, False)])
def test_a_rest_of_the_plan_that_was_slower_is_not_built_for_the_next_precision(bf16_ratio, has_one_float):
    search = SimpleNamespace(_cost=lambda step: (step,))
    fp32, bf16 = (
        [_variant(low, rest, has_one_float=has_one_float) for low in (Precision.INT8_STATIC, Precision.INT8_DYNAMIC)]
        for rest in (Precision.FP32, Precision.BF16)
    )
    for one in (*fp32, *bf16):
        one.target = fp32[0].target
    known = [(fp32[0], 1.0), (bf16[0], bf16_ratio)]
    is_clear = has_one_float and bf16_ratio < searching.CLEARLY_BEHIND
    assert GoalSearch._has_slower_rest(search, fp32[1], known) is is_clear
    assert not GoalSearch._has_slower_rest(search, bf16[1], known)
    assert not GoalSearch._has_slower_rest(search, bf16[0], known[:1])
