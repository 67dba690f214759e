"""The ladder from end to end, on tiny models of every kind."""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ace_studio.engine.capture import capture_fingerprint, capture_model
from ace_studio.engine.capture.eager import EagerRun
from ace_studio.engine.capture.verify import difference
from ace_studio.engine.flow import CapturedModel, Example, LoadedModel
from ace_studio.engine.progress import Cancelled, Reporter
from ace_studio.engine.torch_private import sizes
from ace_studio.engine.torch_private.dynamo import forget_traces
from ace_studio.records.errors import AceError, ErrorCode, ExitCode
from ace_studio.records.messages import AttemptEnded
from ace_studio.records.recipes.recipe import CaptureChoice, InputsChoice, Recipe
from ace_studio.records.results import AttemptStatus, CaptureReport
from ace_studio.records.tensors import DimChoice, DimFinding, DimVerdict
from tests import tiny_models

torch.set_num_threads(1)
CPU = torch.device("cpu")
DEFAULT = Recipe()


def capture(
    module: nn.Module, examples: list[Any], recipe: Recipe = DEFAULT, reporter: Reporter | None = None
) -> tuple[CapturedModel, CaptureReport]:
    loaded = LoadedModel(module=module, source=Path(), sha256="")
    given = [Example.of(example) for example in examples]
    return capture_model(loaded, given, recipe, device=CPU, reporter=reporter or Reporter())


def capture_tiny(name: str, recipe: Recipe = DEFAULT) -> tuple[CapturedModel, CaptureReport]:
    tiny = getattr(tiny_models, name)()
    return capture(tiny.module, tiny.examples, recipe)


WHOLE = Recipe(capture=CaptureChoice(rungs=("export", "export-strict", "dynamo", "fx")))
"""Only the rungs that give the whole graph."""


def failure(name: str) -> AceError:
    with pytest.raises(AceError) as caught:
        capture_tiny(name, WHOLE)
    return caught.value


def dims(captured: CapturedModel) -> dict[str, DimFinding]:
    return {f"{one.name}.{dim.index}": dim for one in captured.inputs for dim in one.dims}


@pytest.mark.parametrize("name", tiny_models.EASY)
def test_easy_models_are_captured_by_the_first_rung_and_equal_eager_at_unseen_sizes(name: str) -> None:
    captured, report = capture_tiny(name)
    assert report.rung == "export"
    assert [one.name for one in report.rungs] == list(Recipe().capture.rungs)
    assert captured.unseen
    graph = captured.program.module()
    with torch.no_grad():
        for example in captured.examples:
            assert not difference(example.call(captured.module), example.call(graph))


@pytest.mark.parametrize("name", tiny_models.EASY)
def test_a_dimension_is_dynamic_exactly_where_the_examples_differ(name: str) -> None:
    tiny = getattr(tiny_models, name)()
    captured, _ = capture(tiny.module, tiny.examples)
    shapes = [[tensor.shape for tensor in Example.of(one).tensors()] for one in tiny.examples]
    for leaf, found in enumerate(captured.inputs):
        for dim in found.dims:
            given = {shape[leaf][dim.index] for shape in shapes}
            assert (dim.verdict is DimVerdict.DYNAMIC) == (len(given) > 1)
            assert given <= set(dim.verified_sizes)
            if dim.verdict is DimVerdict.DYNAMIC:
                assert set(dim.verified_sizes) - given, f"{found.name}.{dim.index} was tried at no unseen size"


def test_a_batch_that_is_once_one_and_shared_by_two_inputs_is_dynamic_from_one_up() -> None:
    captured, _ = capture_tiny("lstm_cell")
    found = dims(captured)
    assert found["x.0"].symbol == found["state.1"].symbol == "s0"
    assert found["x.0"].equal_to == "state.1"
    assert found["x.0"].min == 1
    assert captured.dynamic_dims() == [{0: "s0"}, {1: "s0"}]
    graph = captured.program.module()
    one = Example((torch.ones(1, 8), torch.zeros(2, 1, 16)))
    assert not difference(one.call(captured.module), one.call(graph))


def test_a_size_that_was_only_ever_one_is_unknown_and_asks_for_a_row() -> None:
    captured, _ = capture(nn.Linear(4, 4), [(torch.ones(1, 4),)])
    assert dims(captured)["input.0"].verdict is DimVerdict.UNKNOWN
    assert "add a row" in dims(captured)["input.0"].reason
    assert dims(captured)["input.1"].verdict is DimVerdict.STATIC


def test_the_recipe_can_make_a_dimension_dynamic_that_one_example_leaves_at_one() -> None:
    recipe = Recipe(inputs=InputsChoice(dims={"input.0": DimChoice.DYNAMIC}))
    captured, _ = capture(nn.Linear(4, 4), [(torch.ones(1, 4),)], recipe)
    found = dims(captured)["input.0"]
    assert found.verdict is DimVerdict.DYNAMIC
    assert len(found.verified_sizes) >= 3
    assert tuple(captured.example.tensors()[0].shape) == (2, 4)


class SmallEncoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(100, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)

    def forward(self, input_ids: Tensor) -> Tensor:
        return self.encoder(self.embed(input_ids))


def picture_net() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 4, 3, 2, 1), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())


@pytest.mark.parametrize(
    ("make", "shapes", "dynamic"),
    [
        (picture_net, [(1, 3, 224, 224), (2, 3, 224, 224)], ["input.0"]),
        (picture_net, [(1, 3, 224, 224), (1, 3, 320, 640)], ["input.2", "input.3"]),
        (SmallEncoder, [(1, 1), (1, 256)], ["input_ids.1"]),
        (SmallEncoder, [(1, 256), (2, 1)], ["input_ids.0", "input_ids.1"]),
    ],
)
def test_the_cases_of_the_vendors_questions_are_right_size_one_included(
    make: Any, shapes: list[tuple[int, ...]], dynamic: list[str]
) -> None:
    module = make()
    name = "input" if make is picture_net else "input_ids"
    values = [torch.randint(0, 100, shape) if make is SmallEncoder else torch.randn(shape) for shape in shapes]
    captured, _ = capture(module, [{name: value} for value in values])
    assert [key for key, dim in dims(captured).items() if dim.verdict is DimVerdict.DYNAMIC] == dynamic


class Tied(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.cat([x, x], 1)[:, 1:] + y


def test_sizes_that_follow_from_each_other_are_kept_together() -> None:
    captured, _ = capture(Tied(), [(torch.ones(2, n), torch.ones(2, 2 * n - 1)) for n in (4, 6)])
    found = dims(captured)
    assert found["x.1"].verdict is found["y.1"].verdict is DimVerdict.DYNAMIC
    assert "s0" in (found["y.1"].symbol or "")
    assert captured.unseen
    for example in captured.unseen:
        x, y = example.tensors()
        assert y.shape[1] == 2 * x.shape[1] - 1


def test_a_rule_that_sizes_must_obey_is_told_in_the_verdict() -> None:
    captured, _ = capture(nn.PixelUnshuffle(2), [(torch.ones(1, 1, 8, 8),), (torch.ones(1, 1, 12, 12),)])
    assert "only where" in dims(captured)["input.2"].reason
    assert "input.2 is a multiple of 2" in dims(captured)["input.2"].reason
    assert "only where" not in dims(captured)["input.0"].reason, "the rule holds for every batch"


class Positions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(16, 4)
        self.register_buffer("numbers", torch.arange(16))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.table(self.numbers[: x.shape[1]])


def test_a_table_of_positions_limits_the_length() -> None:
    captured, _ = capture(Positions(), [(torch.ones(1, 5, 4),), (torch.ones(1, 15, 4),)])
    found = dims(captured)["x.1"]
    assert found.max == 16
    assert set(found.verified_sizes) - {5, 15}
    assert max(found.verified_sizes) <= 16


def test_a_model_that_counts_in_a_buffer_is_captured_and_keeps_its_count() -> None:
    class Counts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("n", torch.zeros(()))

        def forward(self, x: Tensor) -> Tensor:
            self.n.add_(1)
            return x + self.n

    module = Counts()
    _, report = capture(module, [(torch.ones(2, 3),)])
    assert report.rung == "export"
    assert float(module.n) == 0


def test_the_strict_rung_rescues_what_the_first_cannot_and_the_first_says_why() -> None:
    captured, report = capture_tiny("square_root_of_length")
    assert report.rung == "export-strict"
    first = report.rungs[0]
    assert first.status is AttemptStatus.FAILED
    assert first.error is not None
    assert "fixes a size" in first.error.what
    assert "x.0" in first.error.what
    assert "math.sqrt(len(x))" in first.error.why
    assert dims(captured)["x.0"].verdict is DimVerdict.DYNAMIC


def test_subgraphs_are_not_looked_for_where_the_whole_graph_was_found() -> None:
    captured, report = capture_tiny("mlp")
    assert report.rungs[-1].name == "partial"
    assert report.rungs[-1].status is AttemptStatus.SKIPPED
    assert isinstance(captured, CapturedModel)
    assert not report.pieces


def test_every_rung_is_reported_as_an_event() -> None:
    events: list[Any] = []
    tiny = tiny_models.mlp()
    capture(tiny.module, tiny.examples, reporter=Reporter(events.append, job="j1"))
    tried = [event for event in events if isinstance(event, AttemptEnded)]
    assert [event.outcome.name for event in tried] == list(Recipe().capture.rungs)
    assert {event.job for event in tried} == {"j1"}


# --- bad input: each with cause, remedy, place, and exit code 3 ---


def assert_helpful(error: AceError, *, code: ErrorCode, line: str) -> None:
    problem = error.problem
    assert problem.code is code
    assert problem.exit_code is ExitCode.NOT_CAPTURED
    assert problem.why
    assert problem.remedy
    if line:
        file, _, rest = problem.where.partition(":")
        number = int(rest.partition(",")[0])
        assert line in Path(file).read_text().splitlines()[number - 1]
    spoken = f"{problem.what} {problem.why} {problem.remedy}".lower()
    for word in ("dynamo", "symnode", "faketensor", "guard", "traceback", "torch._"):
        assert word not in spoken


def test_a_branch_on_a_value_is_named_with_its_line_and_its_module() -> None:
    error = failure("data_dependent")
    assert_helpful(error, code=ErrorCode.NOT_CAPTURED, line="if x.mean() > 0:")
    assert "chooses a branch by a tensor's value" in error.problem.what
    assert error.problem.where.endswith(", module blocks.1")


def test_an_exception_in_forward_is_the_users_with_its_line_and_the_cure_of_a_typo() -> None:
    error = failure("raises")
    assert_helpful(error, code=ErrorCode.USER_CODE, line="x.size[0]")
    assert "x.shape[0]" in error.problem.remedy


def test_an_example_of_the_wrong_shape_is_named_by_number_and_shape() -> None:
    error = failure("wrong_shape")
    assert_helpful(error, code=ErrorCode.BAD_INPUT, line="")
    assert "example 2" in error.problem.what
    assert "2x15" in error.problem.what


def test_a_branch_on_a_size_that_the_examples_have_is_not_accepted() -> None:
    error = failure("size_specialised")
    assert_helpful(error, code=ErrorCode.NOT_CAPTURED, line="if x.shape[1] == 3:")
    assert "x.1 != 3" in error.problem.why


def test_a_branch_on_a_size_that_no_example_has_is_told_in_the_verdict() -> None:
    captured, _ = capture(tiny_models.size_specialised().module, [(torch.ones(2, 5, 4),), (torch.ones(2, 8, 4),)])
    assert "not valid at 3" in dims(captured)["x.1"].reason


class HooksItself(nn.Module):
    """Adds a hook at its first call and notes that it did, as modern model collections do to collect hidden states."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.is_hooked = False
        self.seen: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        if not self.is_hooked:
            self.inner.register_forward_hook(lambda _module, _args, result: self.seen.append(result))
            self.is_hooked = True
        self.seen.clear()
        self.inner(x)
        return torch.cat(self.seen, 1)


def test_a_hook_that_a_call_adds_goes_with_the_note_that_it_is_there() -> None:
    eager = EagerRun.of(HooksItself())
    shapes = [tuple(eager.output(Example((torch.randn(2, 4),))).shape) for _ in range(3)]
    assert shapes == [(2, 4)] * 3


def test_a_plain_attribute_that_changes_is_named_instead_of_frozen() -> None:
    error = failure("stateful")
    assert_helpful(error, code=ErrorCode.NOT_CAPTURED, line="")
    assert "'calls'" in error.problem.what


def test_capture_leaves_the_state_of_the_module_as_it_was() -> None:
    tiny = tiny_models.stateful()
    with pytest.raises(AceError):
        capture(tiny.module, tiny.examples, WHOLE)
    assert tiny.module.calls == 0
    capture(tiny.module, tiny.examples)
    assert tiny.module.calls == 0


class AddsTheLastMean(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.before = torch.zeros(4)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.before
        self.before = x.mean(0)
        return x


def test_no_constant_of_a_tracer_stays_in_the_module_so_it_can_be_captured_again() -> None:
    module = AddsTheLastMean()
    names = set(vars(module))
    for _ in range(2):
        with pytest.raises(AceError):
            capture(module, [torch.randn(2, 4), torch.randn(3, 4)], Recipe(capture=CaptureChoice(rungs=("fx",))))
    assert set(vars(module)) == names


class RemembersTheFirst(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cache: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        if self.cache is None:
            self.cache = x.mean()
        return x - self.cache


def test_what_a_model_keeps_of_its_first_call_is_found_by_a_second_with_other_numbers() -> None:
    with pytest.raises(AceError, match="plain attribute 'cache'"):
        capture(RemembersTheFirst(), [(torch.arange(6.0).reshape(2, 3) ** 2,), (torch.ones(3, 3),)], WHOLE)


class HoldsScript(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            self.part = torch.jit.script(nn.Linear(4, 4))

    def forward(self, x: Tensor) -> Tensor:
        return self.part(x)


def test_a_scripted_part_is_named_as_the_cause() -> None:
    recipe = Recipe(capture=CaptureChoice(rungs=("export", "export-strict")))
    with pytest.raises(AceError, match="compiled with TorchScript"):
        capture(HoldsScript(), [(torch.ones(2, 4),), (torch.ones(3, 4),)], recipe)


def test_a_module_that_is_loaded_anew_is_not_taken_for_the_one_before() -> None:
    """The compiler leaves ``__import_NAME`` behind in whatever globals it traced through."""
    old, new = ModuleType("reloaded_net"), ModuleType("reloaded_net")
    sys.modules["reloaded_net"] = new
    try:
        vars(sizes)["__import_reloaded_net"] = old
        forget_traces()
        assert "__import_reloaded_net" not in vars(sizes)
        vars(sizes)["__import_reloaded_net"] = new
        forget_traces()
        assert vars(sizes).pop("__import_reloaded_net") is new
    finally:
        del sys.modules["reloaded_net"]


class PythonNoise(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        import random

        return x * random.random()


def test_random_numbers_from_outside_torch_are_found() -> None:
    with pytest.raises(AceError, match="random numbers outside torch"):
        capture(PythonNoise(), [(torch.ones(2, 3),)], WHOLE)


@pytest.mark.parametrize(
    ("name", "code"), [("noisy", "random"), ("dropout_left_on", "dropout-in-eval"), ("mutates_input", "mutates-input")]
)
def test_what_may_surprise_later_is_a_warning(name: str, code: str) -> None:
    _, report = capture_tiny(name)
    assert code in [warning.code for warning in report.warnings]


def test_an_argument_that_is_no_tensor_is_said_to_be_fixed() -> None:
    tiny = tiny_models.text_model()
    _, report = capture(tiny.module, [{**example, "scale": 0.5} for example in tiny.examples])
    assert "Input 'scale' is fixed at 0.5 in the graph" in [warning.what for warning in report.warnings]


def test_the_callers_random_numbers_are_not_disturbed() -> None:
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    capture_tiny("mlp")
    assert torch.equal(torch.rand(1), expected)


class Slow(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if isinstance(x.shape[0], torch.SymInt):
            until = time.monotonic() + 60
            while time.monotonic() < until:
                time.sleep(0.005)
        return x + 1


def test_a_rung_that_takes_too_long_is_ended_and_says_what_would_help() -> None:
    recipe = Recipe(capture=CaptureChoice(rungs=("export",), time_limit_s=0.5))
    started = time.monotonic()
    with pytest.raises(AceError, match=r"took longer than 0\.5 s") as caught:
        capture(Slow(), [(torch.ones(2, 3),), (torch.ones(3, 3),)], recipe)
    assert time.monotonic() - started < 10
    assert caught.value.problem.remedy


def test_a_cancel_in_the_middle_of_a_trace_is_heard() -> None:
    started = time.monotonic()
    reporter = Reporter(is_cancelled=lambda: time.monotonic() - started > 1)
    with pytest.raises(Cancelled):
        capture(Slow(), [(torch.ones(2, 3),), (torch.ones(3, 3),)], reporter=reporter)
    assert time.monotonic() - started < 15


def test_the_fingerprint_follows_weights_and_inputs_but_not_the_plan() -> None:
    module = nn.Linear(2, 2)
    loaded = LoadedModel(module=module, source=Path(), sha256="")
    first = capture_fingerprint(loaded, Recipe(), CPU)
    assert capture_fingerprint(loaded, Recipe(targets=Recipe().targets), CPU) == first
    other = Recipe(inputs=InputsChoice(dims={"input.0": DimChoice.DYNAMIC}))
    assert capture_fingerprint(loaded, other, CPU) != first
    with torch.no_grad():
        module.weight.add_(1)
    assert capture_fingerprint(loaded, Recipe(), CPU) != first


class AsksForAPoint(nn.Module):
    """Takes another path where its map has shrunk to one column; with a factor of 1 the result is the same."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.shrink = nn.Conv2d(3, 4, 3, stride=16, padding=1)
        self.factor = factor

    def forward(self, x: Tensor) -> Tensor:
        y = self.shrink(x)
        return y[..., 0] * self.factor if y.shape[3] == 1 else y.mean(3)


CROSSED = [(torch.ones(2, 3, 16, 32).cumsum(3),), (torch.ones(3, 3, 32, 16).cumsum(2),)]
"""One has the larger height, the other the larger width: only an example that nobody gave has both."""


def test_a_map_that_is_a_point_in_the_traced_example_only_is_captured_by_a_wider_one() -> None:
    captured, report = capture(AsksForAPoint(1.0), CROSSED, WHOLE)
    assert report.rung == "export"
    assert captured.example.args[0].shape == (3, 3, 32, 32)
    assert {16, 32} <= set(dims(captured)["x.3"].verified_sizes)


def test_a_point_that_computes_something_else_is_still_refused() -> None:
    with pytest.raises(AceError) as caught:
        capture(AsksForAPoint(2.0), CROSSED, WHOLE)
    assert caught.value.problem.code is ErrorCode.NOT_CAPTURED


class RemembersItsLast(nn.Module):
    """Keeps a tensor with a history, as the older weight norm does; x [n, 4]."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)
        self.last = self.layer.weight * 2

    def forward(self, x):
        return nn.functional.linear(x, self.last)


def test_a_module_that_holds_a_tensor_with_a_history_is_run_and_put_back():
    module = RemembersItsLast()
    before = module.last.detach().clone()
    eager = EagerRun.of(module)
    eager.output(Example.of(torch.randn(3, 4)))
    torch.testing.assert_close(module.last, before, rtol=0, atol=0)


@pytest.mark.parametrize(("dtype", "codes"), [(torch.bfloat16, ["half-model"]), (torch.float32, [])])
def test_a_model_with_weights_of_16_bits_is_told_what_that_costs(dtype, codes):
    module = nn.Linear(4, 2).to(dtype).eval()
    reporter = Reporter()
    examples = [Example.of(torch.ones(n, 4, dtype=dtype)) for n in (2, 3)]
    recipe = Recipe(capture=CaptureChoice(rungs=("export",)))
    loaded = LoadedModel(module=module, source=Path(), sha256="")
    capture_model(loaded, examples, recipe, device=torch.device("cpu"), reporter=reporter)
    assert [one.code for one in reporter.warnings] == codes
