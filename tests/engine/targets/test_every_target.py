"""One suite that every target must pass, at every precision that it says it can do, on models of several kinds."""

import time

import pytest
import torch
from torch import nn
from torch.utils import _pytree as pytree

from ace_studio.engine.export import verify_artifact
from ace_studio.engine.flow import tensor_leaves
from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.fidelity import sqnr_db
from ace_studio.engine.targets import TARGETS, report_refusals, report_targets
from ace_studio.engine.targets.shared.flat_call import tensor_places
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.plan import Plan, Precision
from ace_studio.records.targets import TARGET_ROWS
from tests.engine.bound_plans import bound_at
from tests.engine.captured import captured_of
from tests.engine.targets.conftest import MODELS, bound, captured_model, make_job

MIN_SQNR_DB = {
    Precision.FP32: 100.0,
    Precision.FP16: 45.0,
    Precision.BF16: 25.0,
    Precision.INT8_STATIC: 15.0,
    Precision.INT8_DYNAMIC: 20.0,
    Precision.INT8_WEIGHT: 30.0,
    Precision.INT4_WEIGHT: 8.0,
}
INT8 = {Precision.INT8_STATIC, Precision.INT8_DYNAMIC, Precision.INT8_WEIGHT}
WORDS = {str(precision) for precision in Precision} | {"fused", "folded", "unknown"}
WEIGHT_ONLY = {Precision.INT8_WEIGHT, Precision.INT4_WEIGHT}

COMPILED_CASES = {
    "inductor": {
        Precision.FP32: ("text_model",),
        Precision.FP16: ("mlp",),
        Precision.BF16: ("conv_net",),
        Precision.INT8_STATIC: ("conv_net", "mlp"),
        Precision.INT8_DYNAMIC: ("text_model",),
        Precision.INT8_WEIGHT: ("mlp",),
    },
    "aoti": {Precision.INT8_STATIC: ("mlp",)},
    "executorch": {
        Precision.FP32: ("text_model",),
        Precision.INT8_STATIC: ("conv_net", "mlp"),
        Precision.INT8_DYNAMIC: ("mlp",),
    },
    "litert": dict.fromkeys(Precision, ("conv_net", "mlp")),  # the other one has two dynamic sizes, which it refuses
    "coreml": dict.fromkeys(Precision, MODELS),
}
"""A build takes seconds: each precision and each model is tried, all pairs with ``--full``; what the graph carries into
both compilers alike is tried with one of them."""

AVAILABLE = [name for name, target in TARGETS.items() if target.available().ok]
NOT_RUN = {name: TARGETS[name].run_problem() for name in AVAILABLE if TARGETS[name].run_problem()}
"""What can be built here, but not run -> why: only the build, what it says of every op, and the file are tried."""
ABSENT = [name for name in TARGETS if name not in AVAILABLE]


def _marks(name, precision, model):
    if name not in COMPILED_CASES:
        return []
    is_tried = model in ("", *COMPILED_CASES[name].get(precision, ()))
    return [pytest.mark.slow] if is_tried else [pytest.mark.slow, pytest.mark.full]


def _rows(names, precisions, models=("",)):
    return [
        pytest.param(
            name,
            precision,
            model,
            id="-".join(part for part in (name, str(precision), model) if part),
            marks=_marks(name, precision, model),
        )
        for name in names
        for precision in precisions
        for model in models
    ]


def _has_something(target, precision, model):
    captured = captured_model(model)
    plan = bound(target, captured, precision)
    return precision is Precision.FP32 or bool(plan.ops_at(precision))


def _can(row):
    target, precision, _ = row.values
    return TARGETS[target].precision_problem(precision) == ""


CASES = [row for row in _rows(AVAILABLE, Precision, MODELS) if _can(row)]
REFUSED = [row for row in _rows(AVAILABLE, Precision) if not _can(row)]


@pytest.fixture
def candidate(lower, target, precision, model):
    """The built candidate; a model that has no op for this precision is not built."""
    if not _has_something(target, precision, model):
        pytest.skip(f"no op of {model} can be {precision} in {target}")
    return lower(target, precision, model)


def test_the_registry_has_the_rows_of_the_recipe_in_its_order():
    assert list(TARGETS) == list(TARGET_ROWS)
    assert all(target.name == name and target.label for name, target in TARGETS.items())


def test_the_report_gives_a_reason_for_everything_that_is_missing():
    for row in report_targets():
        assert row.available == TARGETS[row.name].available().ok
        assert row.available or row.reason
        assert set(row.precisions) == set(Precision)
        assert row.available or all(row.precisions.values())
        assert row.version or not row.available
        assert row.not_run == TARGETS[row.name].run_problem()
        assert row.is_in_auto == (TARGET_ROWS[row.name].is_in_auto and not row.not_run)


def test_the_report_of_refusals_is_what_binding_a_plan_would_say_of_each_operator():
    operators = ("aten.relu.default", "aten.conv2d.default", "aten.relu.default")
    found = {one.target: one.operators for one in report_refusals(operators)}
    assert set(found) == {name for name, target in TARGETS.items() if target.available().ok}
    for name, refused in found.items():
        target = TARGETS[name]
        for precision in Precision:
            words = {op: refused.get(op, {}).get(precision, "") for op in operators}
            if not target.precision_problem(precision):
                assert words == {op: target.op_problem(op, precision) for op in operators}
            else:
                assert not any(words.values())
    assert found["eager"]["aten.relu.default"]["int8-weight"]


def assert_nested_and_typed_like_eager_s(runnable, captured):
    with torch.no_grad():
        expected = captured.example.call(captured.module)
    got = captured.example.call(runnable)
    assert pytree.tree_structure(got) == pytree.tree_structure(expected)
    assert [(leaf.dtype, leaf.shape) for leaf in tensor_leaves(got)] == [
        (leaf.dtype, leaf.shape) for leaf in tensor_leaves(expected)
    ]


def assert_close_to_eager_at_every_size_also_unseen_ones(runnable, captured, precision):
    assert captured.unseen
    for example in captured.examples:
        with torch.no_grad():
            reference = tensor_leaves(example.call(captured.module))
        found = sqnr_db(reference, tensor_leaves(example.call(runnable)))
        assert found >= MIN_SQNR_DB[precision], [tuple(leaf.shape) for leaf in example.tensors()]


def assert_each_op_is_named_once(actuals, captured):
    assert sorted(one.op_id for one in actuals) == sorted(captured.table.op_id[row] for row in captured.table.op_rows())
    assert {one.actual for one in actuals} <= WORDS
    assert all(one.reason for one in actuals if one.actual in {"fused", "folded", "unknown"})


def assert_the_planned_precision_really_runs(actuals, planned, precision):
    actual = {one.op_id: one.actual for one in actuals}
    wanted = {str(precision)} if precision not in INT8 else {str(one) for one in INT8}
    assert any(actual[op_id] in wanted for op_id in planned.ops_at(precision))


def assert_one_thread_means_one_thread(runnable, captured):
    captured.example.call(runnable)
    wall, cpu = time.perf_counter(), time.process_time()
    while time.perf_counter() - wall < 0.2:
        captured.example.call(runnable)
    assert (time.process_time() - cpu) / (time.perf_counter() - wall) < 1.2


def assert_saved_it_is_the_same_in_another_process(runnable, target, captured, folder):
    verify_artifact(
        target,
        runnable.save(folder),
        captured.examples,
        expected=[tensor_leaves(example.call(runnable)) for example in captured.examples],
        places=tensor_places(captured),
        threads=1,
        device=captured.device,
        reporter=Reporter(),
    )


@pytest.mark.parametrize(("target", "precision", "model"), CASES)
def test_what_is_built_is_like_eager_says_what_it_is_and_can_be_saved(
    candidate, target, precision, model, tmp_path, pytestconfig
):
    """All checks in one test: the processes of the tests share no build, and one may take a quarter of a minute."""
    captured = captured_model(model)
    actuals = candidate.read_back()
    assert_each_op_is_named_once(actuals, captured)
    assert_the_planned_precision_really_runs(actuals, bound(target, captured, precision), precision)
    if target in NOT_RUN:
        return
    assert_nested_and_typed_like_eager_s(candidate, captured)
    assert_close_to_eager_at_every_size_also_unseen_ones(candidate, captured, precision)
    if model != "mlp":
        return
    assert_one_thread_means_one_thread(candidate, captured)
    # A file is written and opened the same way at each precision; what is in it is seen by other tests.
    if precision in (Precision.FP32, Precision.INT8_STATIC) or pytestconfig.option.full:
        assert_saved_it_is_the_same_in_another_process(candidate, target, captured, tmp_path)


@pytest.mark.parametrize(("target", "precision", "model"), REFUSED)
def test_a_precision_that_it_cannot_do_is_refused_with_a_reason(target, precision, model, tmp_path):
    captured = captured_model("mlp")
    asked = {captured.table.op_id[row]: precision for row in captured.table.op_rows()}
    plan = bound_at(Plan(default=precision), asked)
    with pytest.raises(AceError) as caught:
        TARGETS[target].lower(make_job(captured, plan, tmp_path))
    assert caught.value.problem.why
    assert caught.value.problem.remedy
    assert all(TARGETS[target].op_problem(op, precision) for op in captured.table.op)


@pytest.mark.parametrize("target", ABSENT)
def test_a_target_that_is_not_there_says_so_instead_of_failing_oddly(target, tmp_path):
    captured = captured_model("mlp")
    with pytest.raises(AceError) as caught:
        TARGETS[target].lower(make_job(captured, bound("eager", captured, Precision.FP32), tmp_path))
    assert caught.value.problem.code in {ErrorCode.UNSUPPORTED, ErrorCode.NOT_INSTALLED}


@pytest.mark.parametrize("target", NOT_RUN)
def test_what_cannot_be_run_here_is_saved_and_says_why_when_it_is_called(target, lower, tmp_path):
    lowered = lower(target, Precision.FP32, "mlp")
    path = lowered.save(tmp_path)
    assert path.exists()
    for call in (lambda: captured_model("mlp").example.call(lowered), lambda: TARGETS[target].load(path, threads=1)):
        with pytest.raises(AceError) as caught:
            call()
        assert (caught.value.problem.code, caught.value.problem.why) == (ErrorCode.UNSUPPORTED, NOT_RUN[target])


@pytest.mark.parametrize("target", AVAILABLE)
def test_a_file_that_is_no_artifact_is_refused(target, tmp_path):
    wrong = tmp_path / "model.bin"
    wrong.write_text("<html>not found</html>", encoding="utf-8")
    with pytest.raises(AceError):
        TARGETS[target].load(wrong, threads=1)


class TwoPaths(nn.Module):
    """Another layer from 51 columns on; never called with fewer than 3."""

    def __init__(self):
        super().__init__()
        self.one, self.other = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        if x.shape[1] < 3:
            return x
        return self.other(x) * 3 if x.shape[1] > 50 else self.one(x)


def _columns(count):
    return torch.ones(2, count, 4)


@pytest.fixture(scope="module")
def ranged():
    return captured_of(TwoPaths().eval(), _columns(10), _columns(20))


@pytest.mark.parametrize("name", [name for name in AVAILABLE if name not in COMPILED_CASES])
def test_sizes_beyond_the_range_of_the_graph_are_refused_by_the_model_and_by_what_its_file_says(ranged, name, tmp_path):
    plan = bound(name, ranged, Precision.FP32)
    if TARGETS[name].device_problem(ranged.device):
        pytest.skip("it does not run on the CPU")
    lowered = TARGETS[name].lower(make_job(ranged, plan, tmp_path))
    for count in (3, 50):
        torch.testing.assert_close(lowered(_columns(count)), ranged.module(_columns(count)))
    for count in (2, 51):
        with pytest.raises(AceError, match=f"x.1 must be 3 to 50, and it is {count}") as caught:
            lowered(_columns(count))
        assert caught.value.problem.code is ErrorCode.BAD_INPUT
    path = lowered.save(tmp_path)
    if path.suffix == ".onnx":
        stored = pytest.importorskip("onnx").load(path).metadata_props
        assert {one.key: one.value for one in stored}["ace_studio.sizes"] == "x.1 must be 3 to 50"
        return
    run = torch.export.load(path).module() if path.suffix == ".pt2" else TARGETS[name].load(path, threads=1)
    run(_columns(50))
    for count in (2, 51):
        with pytest.raises((RuntimeError, AceError)):
            run(_columns(count))


class AddedActivation(nn.Module):
    """Adds what a ReLU gives to what the layer before it read."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(32, 32), nn.Linear(32, 32)

    def forward(self, x):
        x = self.first(x).relu()
        return x + self.second(x).relu()


@pytest.mark.parametrize("name", [name for name in ("onnxruntime", "openvino", "inductor") if name in AVAILABLE])
def test_an_activation_that_is_added_to_its_layers_input_is_built_at_int8(name, tmp_path):
    torch.manual_seed(0)
    captured = captured_of(AddedActivation().eval(), torch.randn(200, 32), torch.randn(300, 32))
    lowered = TARGETS[name].lower(make_job(captured, bound(name, captured, Precision.INT8_STATIC), tmp_path))
    x = torch.randn(3, 32)
    assert sqnr_db([captured.module(x)], [lowered(x)]) > MIN_SQNR_DB[Precision.INT8_STATIC]


class ComputedWeight(nn.Linear):
    """Its weight is computed in forward."""

    def forward(self, x):
        return nn.functional.linear(x, self.weight * 0.25, self.bias)


@pytest.mark.parametrize("precision", [Precision.INT8_STATIC, Precision.INT8_WEIGHT])
@pytest.mark.parametrize("name", [name for name in ("onnxruntime", "openvino", "inductor") if name in AVAILABLE])
def test_a_weight_that_forward_computes_is_quantized_as_one_that_is_stored(name, precision, tmp_path):
    torch.manual_seed(0)
    captured = captured_of(ComputedWeight(64, 64).eval(), torch.randn(2, 64), torch.randn(3, 64))
    lowered = TARGETS[name].lower(make_job(captured, bound(name, captured, precision), tmp_path))
    assert {one.op_id: str(one.actual) for one in lowered.read_back()} == {"linear": str(precision)}


class Pooled(nn.Module):
    """Pools to sizes that not every size of the input is a multiple of."""

    def forward(self, x):
        flat = nn.functional.adaptive_avg_pool1d(x.flatten(2), 5)
        maxima = nn.functional.adaptive_max_pool2d(x, (3, 5)), nn.functional.adaptive_max_pool2d(x, 1)
        return nn.functional.adaptive_avg_pool2d(x.relu(), (4, 3)), flat, *maxima


@pytest.mark.parametrize("name", [name for name in ("onnxruntime", "openvino", "inductor") if name in AVAILABLE])
def test_an_adaptive_pool_is_right_at_sizes_that_divide_otherwise_than_the_traced_ones(name, tmp_path):
    captured = captured_of(Pooled(), torch.randn(1, 2, 12, 18), torch.randn(3, 2, 18, 22))
    lowered = TARGETS[name].lower(make_job(captured, bound(name, captured, Precision.FP32), tmp_path))
    for size in ((12, 18), (18, 22), (16, 12), (3, 31), (25, 7)):
        x = torch.randn(2, 2, *size)
        torch.testing.assert_close(lowered(x), Pooled()(x))


class ByteImage(nn.Module):
    """Takes an image of bytes with channels last, gives it turned around, and classifies it."""

    def __init__(self):
        super().__init__()
        self.conv, self.head = nn.Conv2d(3, 8, 3), nn.Linear(8, 5)

    def forward(self, image):
        x = image.permute(0, 3, 1, 2).to(torch.float32) / 255
        return image.flip(2), self.head(self.conv(x).relu().mean((2, 3)))


@pytest.mark.parametrize("precision", [Precision.FP32, Precision.INT8_STATIC, Precision.INT8_WEIGHT])
@pytest.mark.parametrize("name", [name for name in ("onnxruntime", "openvino") if name in AVAILABLE])
def test_bytes_that_the_model_itself_reads_are_not_reported_as_quantized(name, precision, tmp_path):
    torch.manual_seed(0)
    image = torch.randint(0, 255, (2, 12, 12, 3), dtype=torch.uint8)
    captured = captured_of(ByteImage().eval(), image)
    lowered = TARGETS[name].lower(make_job(captured, bound(name, captured, precision), tmp_path))
    lowered(image)
    actual = {one.op_id: str(one.actual) for one in lowered.read_back()}
    assert {actual["permute"], actual["to"], actual["flip"]} <= {"fp32", "fused"}
    assert (actual["linear"] == "fp32") == (precision is Precision.FP32)
