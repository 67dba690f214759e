"""What well-known pages about tracing show, written anew: captured, or told with the line and a way out."""

from __future__ import annotations

import operator
from math import sqrt
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo import graph_break, nonstrict_trace  # noqa: TID251 - what the users of the pages write

from ace_studio.engine.capture.verify import difference
from ace_studio.engine.flow import CapturedModel, Example
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.recipe import CaptureChoice, CaptureControl, ControlKind, Recipe
from ace_studio.records.results import AttemptStatus, CaptureReport
from tests.engine.capture.captures import assert_helpful, capture, dims

ALL = Recipe().capture.rungs


def control(function: str, treat_as: str) -> CaptureControl:
    return CaptureControl(function=function, treat_as=ControlKind(treat_as))


def recipe_of(*controls: CaptureControl, rungs: tuple[str, ...] = ALL) -> Recipe:
    return Recipe(capture=CaptureChoice(rungs=rungs, controls=controls))


def batches(*sizes: int, width: int = 4) -> list[tuple[Tensor]]:
    return [(torch.randn(n, width, generator=torch.Generator().manual_seed(n)),) for n in sizes]


def assert_equal_at(captured: CapturedModel, *sizes: int, width: int = 4) -> None:
    graph = captured.program.module()
    with torch.no_grad():
        for given in batches(*sizes, width=width):
            example = Example.of(given)
            assert not difference(example.call(captured.module), example.call(graph))


def capture_alone(rung: str, module: nn.Module, *controls: CaptureControl) -> tuple[CapturedModel, CaptureReport]:
    return capture(module, batches(2, 5), recipe_of(*controls, rungs=(rung,)))


# --- control flow ---


class SumDecides(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 6)

    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            return self.linear(x)
        return torch.zeros(6)


@pytest.mark.parametrize("rungs", [(name,) for name in ALL[:4]] + [ALL[:4]])
def test_a_branch_on_a_sum_is_refused_on_its_line_by_every_method(rungs: tuple[str, ...]) -> None:
    with pytest.raises(AceError) as caught:
        capture(SumDecides(), [(torch.ones(2, 4),), (torch.ones(5, 4),)], recipe_of(rungs=rungs))
    assert_helpful(caught.value, code=ErrorCode.NOT_CAPTURED, line="if x.sum() > 0:")
    assert "torch.where" in caught.value.problem.remedy
    is_read = rungs != ("fx",)  # the others know that the condition is a value
    assert ("Multiplying one result by the condition is not the same" in caught.value.problem.remedy) is is_read
    assert len({problem.where for problem in caught.value.problems}) == len(caught.value.problems)


class AttributesDecide(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.is_on = True
        self.steps = 5

    def forward(self, x: Tensor) -> Tensor:
        if self.is_on:
            for _ in range(self.steps):
                x = x + 3
        return x


class MayActivate(nn.Module):
    def __init__(self, do_activation: bool) -> None:
        super().__init__()
        self.do_activation = do_activation
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.linear(x)
        return torch.relu(x) if self.do_activation else x


@pytest.mark.parametrize("rung", ALL[:4])
def test_control_flow_over_attributes_is_captured_by_every_method(rung: str) -> None:
    captured, report = capture_alone(rung, nn.Sequential(AttributesDecide(), MayActivate(do_activation=True)))
    assert report.ops == 5 + 2
    assert dims(captured)["input.0"].symbol == "s0"
    assert_equal_at(captured, 1, 9)


def test_an_attribute_that_switches_something_off_gives_another_graph() -> None:
    assert capture_alone("fx", MayActivate(do_activation=False))[1].ops == 1


class FlagDecides(nn.Module):
    def forward(self, x: Tensor, flag: bool) -> Tensor:
        return x if flag else x * 2


@pytest.mark.parametrize("rung", ALL[:4])
def test_a_flag_among_the_arguments_is_fixed_at_its_value_and_said_so(rung: str) -> None:
    given = [{"x": x, "flag": False} for (x,) in batches(2, 5)]
    captured, report = capture(FlagDecides(), given, recipe_of(rungs=(rung,)))
    assert "Input 'flag' is fixed at False in the graph" in [warning.what for warning in report.warnings]
    assert torch.equal(captured.program.module()(x=torch.ones(7, 4), flag=False), torch.full((7, 4), 2.0))


class SizeTypo(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        dim0 = x.size[0]
        if dim0 == 3:
            return torch.relu(x)
        return torch.neg(x)


def test_square_brackets_behind_size_are_a_mistake_of_plain_python() -> None:
    with pytest.raises(AceError) as caught:
        capture(SizeTypo(), batches(2, 5))
    assert_helpful(caught.value, code=ErrorCode.USER_CODE, line="x.size[0]")
    assert "x.size(0)" in caught.value.problem.remedy


class SizeDecides(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if x.size(0) == 3:
            return torch.relu(x)
        return torch.neg(x)


def test_a_branch_on_one_size_is_captured_for_all_the_others_and_refused_with_it() -> None:
    captured, _ = capture_alone("export", SizeDecides())
    assert "not valid at 3" in dims(captured)["x.0"].reason
    with pytest.raises(AceError) as caught:
        capture(SizeDecides(), batches(3, 5), recipe_of(rungs=("export", "fx")))
    assert_helpful(caught.value, code=ErrorCode.NOT_CAPTURED, line="if x.size(0) == 3:")


# --- functions of Python ---


def normalized(x: Tensor) -> Tensor:
    return x / sqrt(len(x))


class Normalizes(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return normalized(x)


@pytest.mark.parametrize("rung", ["export-strict", "dynamo", "fx"])
def test_the_square_root_of_a_length_keeps_it_free_and_is_a_power_on_the_users_line(rung: str) -> None:
    captured, _ = capture_alone(rung, Normalizes())
    assert dims(captured)["x.0"].symbol == "s0"
    assert_equal_at(captured, 1, 9)
    assert [Path(file).name for file in captured.table.files] == [Path(__file__).name]
    called = [str(node.target) for node in captured.program.graph.nodes if node.op == "call_function"]
    assert not [name for name in called if "sqrt" in name]  # every runtime knows the power
    assert [node for node in captured.program.graph.nodes if node.target is operator.pow]


def test_wrapping_length_and_root_by_controls_does_the_same_and_is_noticed() -> None:
    wraps = control("builtins:len", "fx_wrap"), control("math:sqrt", "fx_wrap")
    captured, report = capture_alone("fx", Normalizes(), *wraps)
    assert "idle-control" not in [warning.code for warning in report.warnings]
    assert_equal_at(captured, 1, 9)


def by_columns(x: Tensor, parts: int) -> Tensor:
    total = x[:, :parts].sum(1)
    for column in range(parts, x.shape[1], parts):
        total = total + x[:, column : column + parts].sum(1)
    return total


class LoopsOverColumns(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return by_columns(x, 2)


def test_a_function_that_placeholders_cannot_enter_is_wrapped_as_one_call() -> None:
    with pytest.raises(AceError) as caught:
        capture_alone("fx", LoopsOverColumns())
    assert_helpful(caught.value, code=ErrorCode.NOT_CAPTURED, line="for column in range(parts, x.shape[1], parts):")
    assert "fx_wrap" in caught.value.problem.remedy
    captured, report = capture_alone("fx", LoopsOverColumns(), control(f"{__name__}:by_columns", "fx_wrap"))
    assert report.rung == "fx"
    assert_equal_at(captured, 1, 9)


# --- tensors made inside, leaf modules ---


class AddsOnes(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x) + torch.ones(3, 4)


@pytest.mark.parametrize("rung", ALL[:4])
def test_a_constructor_of_fixed_size_is_captured_by_every_method(rung: str) -> None:
    captured, _ = capture(AddsOnes(), [(torch.randn(3, 4),)], recipe_of(rungs=(rung,)))
    x = torch.randn(3, 4)
    assert torch.equal(captured.program.module()(x), torch.relu(x) + 1)


class Draws(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + torch.rand(4)


def test_a_random_constructor_is_never_frozen() -> None:
    captured, report = capture(Draws(), batches(2, 5))
    assert "random" in [warning.code for warning in report.warnings]
    graph = captured.program.module()
    assert not torch.equal(graph(torch.zeros(2, 4)), graph(torch.zeros(2, 4)))
    with pytest.raises(AceError, match="random"):
        capture_alone("fx", Draws())


class DrawsInEveryLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Draws() for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


def test_a_line_that_draws_in_every_layer_is_told_once() -> None:
    _, report = capture(DrawsInEveryLayer(), batches(2, 5))
    (told,) = (warning.what for warning in report.warnings if warning.code == "random")
    assert told == "rand (+2) draws random numbers: results differ from call to call"


class Negates(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        rows = [x[:, column].neg() for column in range(x.shape[1])]
        return torch.stack(rows, 1)


class HoldsSpecial(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.special = Negates()

    def forward(self, x: Tensor) -> Tensor:
        return self.special(self.linear(x))


def test_a_leaf_module_is_kept_whole_while_placeholders_go_round_it() -> None:
    with pytest.raises(AceError):
        capture_alone("fx", HoldsSpecial())
    captured, report = capture_alone("fx", HoldsSpecial(), control("Negates", "leaf"))
    assert "special" in captured.table.module
    assert "idle-control" not in [warning.code for warning in report.warnings]
    assert_equal_at(captured, 1, 9)


# --- functions that the compiler cannot read ---


def magic_number() -> Tensor:
    graph_break()
    return torch.tensor([42])


class AddsMagic(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x / sqrt(len(x)) + magic_number()


class MarksInside(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x / sqrt(len(x)) + nonstrict_trace(magic_number)()


def test_a_break_in_a_helper_is_told_with_its_line_and_the_control_that_helps() -> None:
    with pytest.raises(AceError) as caught:
        capture_alone("dynamo", AddsMagic())
    assert_helpful(caught.value, code=ErrorCode.NOT_CAPTURED, line="graph_break()")
    assert "nonstrict_trace" in caught.value.problem.remedy


@pytest.mark.parametrize("form", ["control", "inside"])
def test_nonstrict_trace_captures_round_a_break_with_a_free_batch(form: str) -> None:
    module, controls = (AddsMagic(), [control(f"{__name__}:magic_number", "nonstrict_trace")]), ()
    if form == "inside":
        module, controls = (MarksInside(), []), ()
    captured, report = capture_alone("dynamo", module[0], *module[1], *controls)
    assert dims(captured)["x.0"].symbol == "s0"
    assert "idle-control" not in [warning.code for warning in report.warnings]
    assert_equal_at(captured, 1, 9)


def with_hook(x: Tensor) -> Tensor:
    result = x * 2
    graph_break()  # stands for anything that cannot be read
    result += 10
    return result


class CallsHook(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return with_hook(torch.relu(x)) * sqrt(len(x))


def test_allow_in_graph_takes_a_function_as_it_is() -> None:
    given = control("with_hook", "allow_in_graph")
    for rung in ("export-strict", "dynamo"):
        with pytest.raises(AceError):
            capture_alone(rung, CallsHook())
        captured, report = capture_alone(rung, CallsHook(), given)
        assert "idle-control" not in [warning.code for warning in report.warnings]
        assert_equal_at(captured, 1, 9)


def test_a_disabled_function_cannot_be_part_of_a_whole_graph() -> None:
    with pytest.raises(AceError, match="kept away from the tracer") as caught:
        capture_alone("dynamo", CallsHook(), control("with_hook", "disable"))
    assert_helpful(caught.value, code=ErrorCode.NOT_CAPTURED, line="with_hook(torch.relu(x))")


# --- controls that do nothing, or cannot ---


def test_everything_is_put_back_after_a_capture() -> None:
    ours = ("__import_", "__builtins_dict__", "__compiled_fn_")  # torch's own, which come and go with its guards
    before = {name: value for name, value in globals().items() if not name.startswith(ours)}
    capture_alone("fx", Normalizes(), control("builtins:len", "fx_wrap"), control("math:sqrt", "fx_wrap"))
    capture_alone("dynamo", AddsMagic(), control("magic_number", "nonstrict_trace"))
    # torch leaves the modules that its own code needs here, once per process
    assert [name for name in globals() if name not in before and not name.startswith(ours)] == []
    assert all(globals()[name] is value for name, value in before.items())
    with pytest.raises(AceError):
        capture_alone("dynamo", AddsMagic())


@pytest.mark.parametrize(
    ("given", "rung", "why"),
    [
        (control("magic_number", "nonstrict_trace"), "export", "it concerns dynamo, and export was taken without it"),
        (control("magic_number", "nonstrict_trace"), "dynamo", "the model never reached it while dynamo traced"),
        (control("torch.nn:Linear", "leaf"), "fx", "the model never reached it while fx traced"),
    ],
)
def test_a_control_that_did_nothing_is_named(given: CaptureControl, rung: str, why: str) -> None:
    _, report = capture_alone(rung, MayActivate(do_activation=True), given)
    told = [warning.what for warning in report.warnings if warning.code == "idle-control"]
    assert told == [f"The control {given.function} as {given.treat_as} did nothing: {why}"]


def test_a_function_that_does_not_exist_is_told_with_the_nearest_name() -> None:
    given = control(f"{__name__}:magic_numbers", "allow_in_graph"), control("nowhere:at_all", "fx_wrap")
    with pytest.raises(AceError) as caught:
        capture(Normalizes(), batches(2, 5), recipe_of(*given))
    first, second = caught.value.problems
    assert first.code is second.code is ErrorCode.NOT_FOUND
    assert first.remedy == f"Did you mean '{__name__}:magic_number'?"
    assert "no module 'nowhere' is loaded" in second.why


@pytest.mark.parametrize(("name", "kind"), [("normalized", "leaf"), ("Negates", "fx_wrap")])
def test_a_treatment_that_does_not_fit_is_refused(name: str, kind: str) -> None:
    with pytest.raises(AceError, match="does not fit") as caught:
        capture(Normalizes(), batches(2, 5), recipe_of(control(f"{__name__}:{name}", kind)))
    assert caught.value.problem.code is ErrorCode.RECIPE


# --- all rungs side by side ---


def test_all_methods_are_tried_on_request_and_the_first_that_holds_is_taken() -> None:
    recipe = Recipe(capture=CaptureChoice(compare_rungs=True))
    _, report = capture(Normalizes(), batches(2, 5), recipe)
    status = {one.name: one.status for one in report.rungs}
    assert report.rung == "export-strict"
    assert status == {
        "export": AttemptStatus.FAILED,
        "export-strict": AttemptStatus.OK,
        "dynamo": AttemptStatus.OK,
        "fx": AttemptStatus.OK,
        "partial": AttemptStatus.OK,
    }


class RoundsLength(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x[: round(x.shape[0] / 2)]


class Halves(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x[: int(x.shape[0] * 0.5)]


@pytest.mark.parametrize("make", [RoundsLength, Halves])
def test_a_number_made_of_a_size_by_python_is_left_to_another_method(make: Any) -> None:
    with pytest.raises(AceError) as caught:
        capture_alone("fx", make())
    assert_helpful(caught.value, code=ErrorCode.NOT_CAPTURED, line="x.shape[0]")
    assert "fx_wrap" in caught.value.problem.remedy
    captured, _ = capture(make(), batches(4, 6))
    assert_equal_at(captured, 8, 14)


def test_an_import_that_only_old_texts_know_is_told_so() -> None:
    class Imports(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            from torch.compiler import torchdynamo

            return torchdynamo.allow_in_graph(torch.relu)(x)

    with pytest.raises(AceError) as caught:
        capture(Imports(), batches(2, 5))
    assert "no current release has it" in caught.value.problem.why
    assert caught.value.problem.where.startswith(__file__)
