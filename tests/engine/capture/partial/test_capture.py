"""Models whose whole graph cannot be had: subgraphs of them are captured, and the whole still equals eager."""

from __future__ import annotations

import linecache
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ace_studio.engine.capture.limit import CaptureTimeoutError
from ace_studio.engine.capture.partial.capture import host
from ace_studio.engine.capture.partial.recording import FrameRecorder
from ace_studio.engine.capture.verify import difference
from ace_studio.engine.flow import PartialModel
from ace_studio.engine.subgraphs.run_pieces import SubgraphRunner
from ace_studio.engine.torch_private.dynamo import forget_traces
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.graph import OpKind
from ace_studio.records.recipes.recipe import CaptureChoice, CaptureControl, ControlKind, Recipe
from ace_studio.records.results import CaptureReport, SubgraphKind
from ace_studio.records.tensors import DimVerdict
from tests.engine.capture import captures

torch.set_num_threads(1)
PARTIAL = Recipe(capture=CaptureChoice(rungs=("partial",)))


def capture(module: nn.Module, examples: list[Any], recipe: Recipe = PARTIAL) -> tuple[PartialModel, CaptureReport]:
    torch.manual_seed(0)
    captured, report = captures.capture(module, examples, recipe)
    assert isinstance(captured, PartialModel)
    return captured, report


def runner_of(captured: PartialModel) -> SubgraphRunner:
    return SubgraphRunner(
        captured.module, [host(subgraph) for subgraph in captured.subgraphs], controls=captured.controls
    )


def code_of(report: CaptureReport) -> list[str]:
    return [linecache.getline(one.file, one.line).strip() for one in report.graph_breaks]


class OneBreak(nn.Module):
    """One break between two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.last = nn.Linear(16, 64), nn.Linear(64, 4)

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.relu(self.inner(x))
        if hidden.sum() > 1e6:
            hidden = hidden * 2
        return self.last(hidden)


def test_all_subgraphs_are_counted_at_the_traced_example_and_reading_the_value_is_what_is_left() -> None:
    captured, report = capture(OneBreak(), [torch.randn(2, 16), torch.randn(5, 16)])
    counted = [flops for op, flops in zip(captured.table.op, captured.table.flops, strict=True) if "linear" in op]
    assert counted == [2 * 5 * 16 * 64, 2 * 5 * 64 * 4]
    assert (report.ops, report.ops_left_eager) == (5, 1)


class Branches(nn.Module):
    """A branch by a value in the middle, and sizes that are used on both sides of it.

    Images of positive numbers take the first side, of negative ones the second.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.stem.weight.data.abs_()
        self.stem.bias.data.fill_(-1)
        self.norm = nn.BatchNorm2d(8)
        self.wide = nn.Conv2d(8, 8, 3, padding=1)
        self.narrow = nn.Conv2d(8, 8, 1)
        self.head = nn.Linear(8, 5)

    def forward(self, image: Tensor) -> Tensor:
        y = torch.relu(self.norm(self.stem(image)))
        height, width = y.shape[-2:]
        if y.mean() > 0:
            y = torch.relu(self.wide(y))
            return self.head((y * (height / width)).mean((2, 3)))
        return self.head(self.narrow(y).mean((2, 3)))


IMAGES = [torch.randn(2, 3, 8, 10).abs(), torch.randn(3, 3, 12, 9).abs(), torch.randn(1, 3, 5, 9).abs()]


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(16, 32)
        self.down = nn.Linear(32, 16)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(torch.relu(self.up(x)))


class EarlyExit(nn.Module):
    """A break in a loop: the compiler gives up the whole function."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(3)])
        self.exits = nn.ModuleList([nn.Linear(16, 3) for _ in range(3)])

    def forward(self, x: Tensor) -> Tensor:
        for block, leave in zip(self.blocks, self.exits, strict=True):
            x = block(x)
            result = leave(x)
            if result.softmax(-1).max() > 0.9:
                return result
        return result


_numbers = torch.Generator().manual_seed(0)  # with some others the loop ends early
ROWS = [torch.randn(rows, 16, generator=_numbers) for rows in (2, 5, 1)]


class Experts(nn.Module):
    """Each expert sees as many rows as the gate gives it."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(16, 3)
        self.experts = nn.ModuleList([nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16)) for _ in "abc"])

    def forward(self, x: Tensor) -> Tensor:
        chosen = self.gate(x).argmax(-1)
        result = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            rows = (chosen == number).nonzero().squeeze(-1)
            if rows.numel() > 0:
                result[rows] = expert(x[rows])
        return result


class Greedy(nn.Module):
    """Decodes until a token comes, or the end."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, 16)
        self.block = Block()
        self.to_token = nn.Linear(16, 20)

    def forward(self, tokens: Tensor) -> Tensor:
        while tokens.shape[1] < 10:
            state = self.block(self.embed(tokens))
            token = self.to_token(state[:, -1]).argmax(-1, keepdim=True)
            tokens = torch.cat([tokens, token], 1)
            if (token == 3).all():
                break
        return tokens


AWKWARD = {
    "branches": (Branches, IMAGES),
    "early exit": (EarlyExit, ROWS),
    "experts": (Experts, [torch.randn(24, 16), torch.randn(40, 16)]),
    "greedy": (Greedy, [torch.randint(0, 20, (2, 4)), torch.randint(0, 20, (1, 3))]),
}


@cache
def capture_awkward(name: str) -> tuple[PartialModel, CaptureReport]:
    """Made once, for tests that only read it."""
    kind, examples = AWKWARD[name]
    torch.manual_seed(0)  # none of these weights makes an exit so sure that the loop ends there
    return capture(kind().eval(), [(example,) for example in examples])


@pytest.mark.parametrize("name", AWKWARD)
def test_something_is_captured_and_the_whole_equals_eager_at_sizes_that_nobody_gave(name: str) -> None:
    captured, report = capture_awkward(name)
    module = captured.module
    assert report.rung == "partial"
    assert len(report.pieces) >= 1
    assert all(subgraph.error is None for subgraph in report.pieces)
    assert report.graph_breaks
    assert report.ops_left_eager > 0
    assert captured.unseen
    runner = runner_of(captured)
    with torch.no_grad():
        for example in captured.examples:
            assert not difference(example.copied().call(module), example.copied().call(runner))


def test_a_loop_with_a_break_is_captured_by_its_submodules() -> None:
    captured, report = capture_awkward("early exit")
    kinds = {subgraph.module: subgraph.kind for subgraph in report.pieces}
    later = {f"blocks.{n}": SubgraphKind.FRAME for n in (1, 2)} | {f"exits.{n}": SubgraphKind.MODULE for n in (1, 2)}
    first = {"blocks.0": SubgraphKind.FRAME, "exits.0": SubgraphKind.MODULE}
    as_function = {"": SubgraphKind.FRAME}  # torch 2.11 captures the function up to the break
    assert kinds in (later | first, later | as_function), kinds
    assert code_of(report) == ["if result.softmax(-1).max() > 0.9:"]
    assert report.graph_breaks[0].count == 3
    runner = runner_of(captured)
    with torch.no_grad():
        runner(torch.randn(7, 16))
    assert not runner.missed  # the submodules were recorded at all sizes


@pytest.mark.parametrize(
    ("failure", "words"), [(CaptureTimeoutError(), "longer than"), (RuntimeError("x"), "RuntimeError")]
)
def test_submodules_are_the_subgraphs_where_the_code_is_not_read_to_the_end(
    monkeypatch: pytest.MonkeyPatch, failure: BaseException, words: str
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise failure

    monkeypatch.setattr(FrameRecorder, "_run_frame", fails)
    module = Branches().eval()
    captured, report = capture(module, [(image,) for image in IMAGES])
    assert {subgraph.kind for subgraph in report.pieces} == {SubgraphKind.MODULE}
    assert [one.code for one in report.warnings] == ["reading-given-up"]
    assert words in report.warnings[0].what
    assert code_of(report) == ["if y.mean() > 0:"]
    order = [captured.table.module[row] for row in captured.table.op_rows()]
    assert order == ["stem", "norm", "wide", "head"]
    with torch.no_grad():
        assert not difference(module(IMAGES[1]), runner_of(captured)(IMAGES[1]))


def test_a_break_that_the_compiler_did_not_come_to_is_taken_from_the_methods_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = FrameRecorder.__call__

    def too_long(recorder: FrameRecorder, *args: Any) -> Any:
        if recorder.needs_graphs:
            raise CaptureTimeoutError
        return plain(recorder, *args)

    monkeypatch.setattr(FrameRecorder, "__call__", too_long)
    recipe = Recipe(capture=CaptureChoice(rungs=("export", "partial")))
    captured, report = capture(Branches().eval(), [(image,) for image in IMAGES], recipe)
    assert code_of(report) == ["if y.mean() > 0:"]
    assert report.graph_breaks[0].id in captured.table.op_id
    assert report.graph_breaks[0].ops_left_eager > 0


def test_a_break_says_its_line_reason_hint_cost_and_row() -> None:
    captured, report = capture_awkward("branches")
    (found,) = report.graph_breaks
    assert found.code == "if y.mean() > 0:"
    assert "chooses a branch by a tensor's value" in found.reason
    assert "torch.where" in found.hint
    assert found.count == 1
    assert found.ops_left_eager > 0
    row = captured.table.op_id.index(found.id)
    assert captured.table.kind[row] is OpKind.BREAK
    assert captured.table.line[row] == found.line


def test_subgraphs_and_breaks_are_one_graph_in_the_order_of_the_code() -> None:
    table = capture_awkward("branches")[0].table
    kinds = [f"{kind}{table.piece[row]}" for row, kind in enumerate(table.kind)]
    assert list(dict.fromkeys(kinds)) == ["input-1", "op0", "break-1", "op1", "output-1"]
    assert all(source < target for source, target in zip(table.edge_source, table.edge_target, strict=True))
    seam = table.kind.index(OpKind.BREAK)
    assert {target for source, target in zip(table.edge_source, table.edge_target, strict=True) if source == seam}
    named = {table.module[row] for row in table.op_rows()}
    assert {"stem", "norm", "wide", "head"} <= named


def test_subgraphs_are_dynamic_where_the_model_is_and_static_elsewhere() -> None:
    _, report = capture_awkward("branches")
    verdicts = [dim.verdict for dim in report.pieces[0].inputs[0].dims]
    assert verdicts == [DimVerdict.DYNAMIC, DimVerdict.STATIC, DimVerdict.DYNAMIC, DimVerdict.DYNAMIC]
    image = report.inputs[0].dims
    assert [dim.verdict for dim in image] == verdicts
    assert image[1].verified_sizes == (3,) and {1, 2, 3} < set(image[0].verified_sizes)


@pytest.mark.parametrize("first", [2, 1, 0])
def test_subgraphs_are_found_whatever_the_sizes_of_the_first_call_are(first: int) -> None:
    runner = runner_of(capture_awkward("branches")[0])
    runner(IMAGES[first])
    assert not runner.waiting


def test_the_other_side_of_a_branch_runs_eagerly_and_is_right() -> None:
    captured, _ = capture_awkward("branches")
    runner = runner_of(captured)
    with torch.no_grad():
        assert torch.allclose(runner(-IMAGES[0]), captured.module(-IMAGES[0]), atol=1e-5)


def test_what_the_compiler_forgets_is_read_again_under_the_right_settings() -> None:
    captured, _ = capture_awkward("branches")
    module = captured.module
    calls: list[str] = []
    hosted = [host(subgraph) for subgraph in captured.subgraphs]

    def counted(function: Any, name: str) -> Any:
        return lambda *tensors: (calls.append(name), function(*tensors))[1]

    runner = SubgraphRunner(module, [type(one)(one.place, counted(one.function, one.place.name)) for one in hosted])
    runner(IMAGES[0])
    assert calls == ["p0", "p1"]
    forget_traces()
    for _ in range(3):
        result = runner(IMAGES[1])
    with torch.no_grad():
        assert torch.equal(result, module(IMAGES[1]))
    assert calls[-2:] == ["p0", "p1"]


class Halves(nn.Module):
    """Another path for every power of two, by recursion over a size."""

    def __init__(self) -> None:
        super().__init__()
        self.join = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        count = x.shape[1]
        if count == 1:
            return x[:, 0]
        halves = [self.forward(x[:, : count // 2]), self.forward(x[:, count // 2 :])]
        return self.join(torch.cat(halves, -1)).tanh()


class Columns(Halves):
    """Another path for every number of columns, by a loop."""

    def forward(self, x: Tensor) -> Tensor:
        y = x[:, 0]
        for column in range(1, x.shape[1]):
            y = self.join(torch.cat([y, x[:, column]], -1)).tanh()
        return y


@pytest.mark.parametrize(
    ("kind", "columns"), [(Columns, (2, 3, 4)), pytest.param(Halves, (2, 4, 8), marks=[pytest.mark.full])]
)
def test_a_path_per_size_gives_subgraphs_for_the_sizes_of_the_examples(
    kind: type[Halves], columns: tuple[int, int, int]
) -> None:
    module = kind().eval()
    captured, report = capture(module, [(torch.randn(2, columns[0], 4),), (torch.randn(3, columns[1], 4),)])
    assert any(subgraph.error is None for subgraph in report.pieces)
    runner, x = runner_of(captured), torch.randn(5, columns[2], 4)
    with torch.no_grad():
        assert torch.allclose(runner(x), module(x), atol=1e-6)


class RemembersTheFirst(nn.Module):
    """Keeps something of the first call for all the others."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.first: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        if self.first is None:
            self.first = x.mean()
        return self.linear(x) - self.first


def test_what_a_model_keeps_of_its_first_call_is_kept_between_subgraphs() -> None:
    module = RemembersTheFirst().eval()
    calls = [torch.arange(6.0).reshape(2, 3) ** 2, torch.ones(3, 3), torch.randn(2, 3)]
    captured, _ = capture(module, [(one,) for one in calls[:2]])
    assert module.first is None
    runner = runner_of(captured)
    with torch.no_grad():
        given = [runner(one) for one in calls]
        wanted = [module(one) for one in calls]
    assert all(torch.allclose(one, other, atol=1e-5) for one, other in zip(given, wanted, strict=True))


class Accumulates(nn.Module):
    """Writes into a buffer, which the next call reads, and counts in a plain attribute, as no graph can."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.calls = 0
        self.register_buffer("total", torch.zeros(4))

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        y = self.linear(x) * self.calls
        if y.sum() > 1e9:
            return y
        self.total += y.mean(0)
        return y + self.total


def test_a_buffer_and_an_attribute_that_change_are_no_constants_of_a_subgraph() -> None:
    module = Accumulates().eval()
    captured, _ = capture(module, [(torch.randn(3, 4),)])
    assert (module.calls, float(module.total.sum())) == (0, 0)
    runner, x = runner_of(captured), torch.ones(3, 4)
    with torch.no_grad():
        given = [runner(x) for _ in range(3)]
        assert not runner.missed
        assert (module.calls, float(module.total.sum())) == (0, 0), "the runner has a copy"
        wanted = [module(x) for _ in range(3)]
    assert all(torch.allclose(one, other, atol=1e-6) for one, other in zip(given, wanted, strict=True))


class Shared(nn.Module):
    """One layer at two places, and tied weights."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Linear(8, 8)
        self.two = nn.Linear(8, 8)
        self.two.weight = self.one.weight

    def forward(self, x: Tensor, options: dict[str, Tensor]) -> dict[str, Tensor]:
        y = self.one(x)
        if float(y.max()) > 1e6:
            y = y * 0
        return {"sum": self.two(y) + options["bias"], "last": self.one(y)}


@cache
def capture_shared() -> PartialModel:
    return capture(Shared().eval(), [(torch.randn(2, 8), {"bias": torch.randn(8)})])[0]


def test_nested_inputs_outputs_and_tied_weights_keep_their_form() -> None:
    captured = capture_shared()
    runner, example = runner_of(captured), (torch.randn(2, 8), {"bias": torch.randn(8)})
    with torch.no_grad():
        assert not difference(captured.module(*example), runner(*example))
    assert not runner.missed


def test_a_call_at_a_size_that_a_subgraph_does_not_take_runs_eagerly_and_is_right() -> None:
    captured = capture_shared()
    runner, options = runner_of(captured), {"bias": torch.randn(8)}
    runner(torch.randn(2, 8), options)
    assert runner.missed == 0
    other = torch.randn(5, 8)
    with torch.no_grad():
        assert not difference(runner(other, options), captured.module(other, options))
    assert runner.missed > 0


def helper(x: Tensor) -> Tensor:
    return x * 2 if x.sum() > 0 else x


class CallsHelper(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.last = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(helper(torch.relu(self.first(x))))


def test_a_disabled_function_parts_the_model_and_the_control_is_seen_to_work() -> None:
    control = CaptureControl(function=f"{__name__}:helper", treat_as=ControlKind.DISABLE)
    recipe = Recipe(capture=CaptureChoice(rungs=("partial",), controls=(control,)))
    module = CallsHelper().eval()
    captured, report = capture(module, [(torch.randn(3, 4),)], recipe)
    assert len(report.pieces) == 2
    assert not [one for one in report.warnings if one.code == "idle-control"]
    assert captured.controls == ((f"{__name__}:helper", "disable"),)
    with torch.no_grad():
        x = torch.randn(3, 4)
        assert torch.allclose(runner_of(captured)(x), module(x), atol=1e-6)


class OnlyPython(nn.Module):
    """Nothing in it can be a subgraph."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.tensor([sum(map(sum, x.tolist()))])


def test_a_model_without_any_subgraph_says_so() -> None:
    with pytest.raises(AceError) as caught:
        capture(OnlyPython(), [(torch.randn(2, 4),), (torch.randn(5, 4),)])
    assert caught.value.problem.code is ErrorCode.NOT_CAPTURED
    assert "No subgraph" in caught.value.problem.what
    assert caught.value.problem.remedy


class CountsInATensor(nn.Module):
    """A size that torch computes: beyond the break there, the compiler itself fails in the slices."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))
        self.head = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.body(x)
        count = torch.div(x.size(1), 4, rounding_mode="trunc")
        table = x.new_zeros((x.size(0), count, 4, 8))
        table[:, 1:, :, 4:] = table[:, :-1, -3:-2, :4] + 1
        return self.head(table) + x.mean()


def test_where_the_compiler_itself_fails_that_function_runs_eagerly_and_the_rest_in_subgraphs() -> None:
    captured, report = capture(CountsInATensor(), [(torch.randn(2, 8, 8),), (torch.randn(2, 16, 8),)])
    assert {subgraph.error for subgraph in report.pieces} == {None}
    unseen = torch.randn(2, 12, 8)
    assert not difference(captured.module(unseen), runner_of(captured)(unseen))
