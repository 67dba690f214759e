"""Trying fixes from a file: what is green, what is not and why, and that nothing of the user's changes."""

import sys
import textwrap
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from torch import nn

from ace_studio.engine import pipeline
from ace_studio.engine.fixes import Spot, proposed_fixes, table
from ace_studio.engine.progress import Cancelled, Reporter
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.fixes import FixKind, FixReport, FixStatus, ranked_fixes
from ace_studio.records.messages import Event, FixRequest, FixTried, JobFinished
from ace_studio.records.patches import apply_patch, together
from ace_studio.records.recipes.recipe import (
    CaptureChoice,
    CaptureControl,
    ControlKind,
    InputsChoice,
    MeasureChoice,
    ModelChoice,
    Recipe,
)
from ace_studio.records.tensors import TensorSpec

HEAD = """
import math
import torch
from torch import nn
from torch._dynamo import graph_break


"""
TWO_LAYERS = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.left = nn.Linear(4, 4)
        self.right = nn.Linear(4, 4)

"""


class Bench:
    """A folder with a model, and what is tried in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.events: list[Event] = []

    def write(self, body: str, name: str = "net.py", head: str = HEAD) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(head + textwrap.dedent(body))
        return path

    def recipe(self, *rungs: str, controls: Any = (), rows: Any = ((2, 4), (5, 4)), source: str = "net.py") -> Recipe:
        specs = tuple({"x": TensorSpec(shape=shape, dtype="float32", values="random")} for shape in rows)
        return Recipe(
            model=ModelChoice(source=source, entry="Net"),
            inputs=InputsChoice(rows=specs),
            capture=CaptureChoice(rungs=rungs, controls=controls, cache=False),
            measure=MeasureChoice(device="cpu"),
        )

    def tried(
        self,
        recipe: Recipe,
        at: tuple[Path, int] | None = None,
        reporter: Reporter | None = None,
        *,
        only: Collection[FixKind] = tuple(FixKind),
    ) -> list[FixReport]:
        file, line = (str(at[0]), at[1]) if at else ("", 0)
        self.events.clear()
        request = FixRequest(job="fix", recipe=recipe, folder=str(self.folder), trust_all=True, file=file, line=line)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(table, "FIX_ROWS", [row for row in table.FIX_ROWS if row.kind in only])
            pipeline.fix(request, reporter or Reporter(self.events.append))
        assert isinstance(self.events[-1], JobFinished)
        return [event.fix for event in self.events if isinstance(event, FixTried)]

    def tried_alone(self, kind: FixKind, recipe: Recipe, at: tuple[Path, int] | None = None) -> FixReport:
        """The fix of one kind; no other is tried."""
        (one,) = self.tried(recipe, at, only={kind})
        return one


def of_kind(fixes: list[FixReport], kind: FixKind) -> FixReport:
    (one,) = [fix for fix in fixes if fix.kind is kind]
    return one


def line_of(path: Path, text: str) -> int:
    return next(number for number, line in enumerate(path.read_text().splitlines(), start=1) if text in line)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


# --- every kind where it is green ---

BRANCH = (
    TWO_LAYERS
    + """
    def forward(self, x):
        if x.mean() > 0:
            return self.left(x)
        y = self.right(x)
        return y + 1
"""
)
LOOP_IN_BRANCH = (
    TWO_LAYERS
    + """
    def forward(self, x):
        if x.mean() > 0:
            for _ in range(2):
                x = self.left(x)
        return self.right(x)
"""
)
STEP = (
    TWO_LAYERS
    + """
        self.register_buffer("step", torch.tensor(2))

    def forward(self, x):
        steps = int(self.step.item())
        if steps > 1:
            x = self.left(x)
        return self.right(x) * steps
"""
)
MAGIC = (
    """
def magic():
    graph_break()
    return torch.tensor([42])
"""
    + TWO_LAYERS
    + """
    def forward(self, x):
        return self.right(self.left(x) / math.sqrt(len(x)) + magic())
"""
)
HOOK = (
    """
def hook(x):
    result = x * 2
    graph_break()
    result += 10
    return result
"""
    + TWO_LAYERS
    + """
    def forward(self, x):
        return self.right(hook(torch.relu(self.left(x))))
"""
)
COLUMNS = (
    """
def by_columns(x):
    total = x[:, :2].sum(1)
    for column in range(2, x.shape[1], 2):
        total = total + x[:, column : column + 2].sum(1)
    return total
"""
    + TWO_LAYERS
    + """
    def forward(self, x):
        return by_columns(self.left(x))
"""
)
SPECIAL = (
    """
class Special(nn.Module):
    def forward(self, x):
        return torch.stack([x[:, column].neg() for column in range(x.shape[1])], 1)
"""
    + TWO_LAYERS
    + """
        self.special = Special()

    def forward(self, x):
        return self.right(self.special(self.left(x)))
"""
)
SEVERAL = (
    """
def noisy(x):
    graph_break()
    x = x + 1
    graph_break()
    return x
"""
    + TWO_LAYERS
    + """
    def forward(self, x):
        return self.right(noisy(self.left(x)))
"""
)
GREEN = {
    "where": (BRANCH, ("export",), "export"),
    "cond": (LOOP_IN_BRANCH, ("export",), "export"),
    "constant": (STEP, ("export",), "export"),
    "nonstrict_trace": (MAGIC, ("dynamo",), "dynamo"),
    "allow_in_graph": (HOOK, ("export-strict",), "export-strict"),
    "fx_wrap": (COLUMNS, ("fx",), "fx"),
    "leaf": (SPECIAL, ("fx",), "fx"),
}


@pytest.mark.parametrize("name", GREEN)
def test_every_kind_is_green_where_it_helps(bench: Bench, name: str) -> None:
    body, rungs, rung = GREEN[name]
    source = f"{name}_net.py"  # torch keeps names of modules in this process; no other test has these
    bench.write(body, source)
    fix = bench.tried_alone(FixKind(name), bench.recipe(*rungs, source=source))
    assert (fix.status, fix.problem) == (FixStatus.GREEN, None)
    assert fix.before.rung == "" and fix.after.rung == rung
    assert fix.inputs_compared >= 7  # two examples, four variations of their values, sizes that nobody gave
    assert bool(fix.patch) is (name in ("where", "cond", "constant"))
    if not fix.patch:
        assert fix.control is not None and fix.control.treat_as == name
        controls = (fix.control,)
        assert bench.tried(bench.recipe(*rungs, controls=controls, source=source)) == []  # nothing stops it any more
    if name == "nonstrict_trace":
        assert fix.control == CaptureControl(function=f"{name}_net:magic", treat_as=ControlKind.NONSTRICT_TRACE)


def test_two_places_that_need_the_same_change_are_served_by_one_try(bench: Bench) -> None:
    path = bench.write(STEP)
    spots = [Spot.of(str(path), line_of(path, text), nn.Identity()) for text in ("int(self.step", "if steps > 1")]
    first, second = ([one for one in proposed_fixes(spot) if one.kind is FixKind.CONSTANT] for spot in spots)
    assert [one.change for one in first] == [one.change for one in second] and first[0].line != second[0].line


def test_keeping_a_function_with_several_breaks_out_leaves_one_break(bench: Bench) -> None:
    path = bench.write(SEVERAL)
    recipe = bench.recipe("dynamo", "partial", rows=((2, 4),))
    kinds = {FixKind.DISABLE, FixKind.NONSTRICT_TRACE}
    fixes = bench.tried(recipe, (path, line_of(path, "graph_break()")), only=kinds)
    fix = of_kind(fixes, FixKind.DISABLE)
    assert fix.before.rung == fix.after.rung == "partial"
    assert (fix.before.breaks, fix.after.breaks, fix.status) == (2, 1, FixStatus.GREEN)
    assert of_kind(fixes, FixKind.NONSTRICT_TRACE).status is FixStatus.GREEN


TWO_BRANCHES = (
    TWO_LAYERS
    + """
    def forward(self, x):
        x = self.left(x)
        if x.mean() > 0:
            x = torch.relu(x)
        x = self.right(x)
        return torch.tanh(x) if x.sum() > 0 else x
"""
)


def test_two_branches_are_fixed_one_at_a_time_and_both_patches_make_it_whole(bench: Bench) -> None:
    path = bench.write(TWO_BRANCHES)
    recipe = bench.recipe("export", "partial", rows=((2, 4),))
    fixes = bench.tried(recipe, only={FixKind.WHERE})
    assert [fix.status for fix in fixes] == [FixStatus.GREEN] * 2
    assert [(fix.before.breaks, fix.after.breaks) for fix in fixes] == [(2, 1)] * 2
    text = path.read_text()
    path.write_text(apply_patch(text, together(text, [fix.patch for fix in fixes])))
    assert bench.tried(recipe) == []


# --- where they are not, and why ---

SHAPES = (
    TWO_LAYERS
    + """
    def forward(self, x):
        if x.sum() > 0:
            return self.left(x)
        return torch.zeros(4)
"""
)
WHOLE_DIVISION = (
    TWO_LAYERS
    + """
    def forward(self, x):
        counts = x.round().to(torch.int64).clamp(min=0)
        if counts.min() > 0:
            return 100 // counts
        return counts
"""
)
GUARDED = (
    TWO_LAYERS
    + """
    def forward(self, x):
        total = x.clamp(min=0).sum()
        if total > 0:
            return x / total
        return torch.zeros_like(x)
"""
)
VALUE = (
    TWO_LAYERS
    + """
    def forward(self, x):
        n = int(x.abs().sum().item())
        return x * n if n > 1 else x
"""
)
COUNTS = (
    """
count = {"calls": 0}


def counting(x):
    graph_break()
    count["calls"] += 1
    return x + count["calls"]
"""
    + TWO_LAYERS
    + """
    def forward(self, x):
        return self.right(counting(self.left(x)))
"""
)


def test_sides_of_different_shapes_are_told_as_such(bench: Bench) -> None:
    """A page multiplies one result by the condition: its shape is then another one than the model's."""
    bench.write(SHAPES)
    fixes = bench.tried(bench.recipe("export"))
    assert {fix.kind for fix in fixes} == {FixKind.WHERE, FixKind.COND}
    where, cond = of_kind(fixes, FixKind.WHERE), of_kind(fixes, FixKind.COND)
    assert where.status is FixStatus.WRONG and where.problem is not None
    assert "different shapes" in where.problem.why and "(2, 4) instead of (4,)" in where.problem.why
    assert "one shape per result" in where.problem.remedy and "torch.zeros_like" in where.problem.remedy
    assert cond.status is FixStatus.FAILED and cond.problem is not None
    assert "one structure, shape and type" in cond.problem.why
    assert {where.patch != "", cond.patch != ""} == {True}  # what was tried is shown


def test_a_side_that_must_not_run_is_found_by_running_it_and_green_ones_are_shown_first(bench: Bench) -> None:
    bench.write(WHOLE_DIVISION)
    fixes = bench.tried(bench.recipe("export"))
    where = of_kind(fixes, FixKind.WHERE)
    assert where.status is FixStatus.FAILED and where.problem is not None and "RuntimeError" in where.problem.why
    assert of_kind(fixes, FixKind.COND).status is FixStatus.GREEN
    assert [fix.kind for fix in fixes] == [FixKind.WHERE, FixKind.COND]
    assert [fix.kind for fix in ranked_fixes(fixes)] == [FixKind.COND, FixKind.WHERE]


def test_the_nan_of_the_side_that_is_not_taken_never_gets_into_the_result(bench: Bench) -> None:
    bench.write(GUARDED)
    where = bench.tried_alone(FixKind.WHERE, bench.recipe("export"))
    assert where.status is FixStatus.GREEN and "a division" in where.note


def test_a_value_that_differs_between_examples_is_no_constant(bench: Bench) -> None:
    path = bench.write(VALUE)
    fix = bench.tried_alone(FixKind.CONSTANT, bench.recipe("export"), (path, line_of(path, "if n > 1")))
    assert fix.status is FixStatus.FAILED and fix.problem is not None
    assert "not the same on all examples" in fix.problem.why and "int(x.abs().sum().item())" in fix.problem.why


def test_a_value_of_one_example_is_refuted_by_other_numbers(bench: Bench) -> None:
    path = bench.write(VALUE)
    recipe = bench.recipe("export", rows=((2, 4),))
    fix = bench.tried_alone(FixKind.CONSTANT, recipe, (path, line_of(path, "if n > 1")))
    assert fix.status is FixStatus.WRONG and fix.problem is not None and "other numbers" in fix.problem.why


def test_a_function_whose_side_effect_would_be_frozen_is_found_out(bench: Bench) -> None:
    bench.write(COUNTS)
    fixes = bench.tried(bench.recipe("dynamo"))
    for fix in (of_kind(fixes, kind) for kind in (FixKind.ALLOW_IN_GRAPH, FixKind.NONSTRICT_TRACE)):
        assert fix.status is FixStatus.WRONG and fix.problem is not None
        assert "another result at every call" in fix.problem.what and "a counter" in fix.problem.why


def test_nothing_is_to_gain_where_the_graph_is_whole(bench: Bench) -> None:
    path = bench.write(MAGIC)
    recipe = bench.recipe("export", "fx", "dynamo")
    assert bench.tried(recipe) == []
    fix = of_kind(bench.tried(recipe, (path, line_of(path, "graph_break()"))), FixKind.DISABLE)
    assert fix.status is FixStatus.NO_EFFECT and "Nothing to gain" in fix.note


def test_a_model_that_does_not_run_is_an_error_of_its_own(bench: Bench) -> None:
    bench.write(TWO_LAYERS + "\n    def forward(self, x):\n        return self.left(x.size[0])\n")
    with pytest.raises(AceError) as caught:
        bench.tried(bench.recipe("export"))
    assert caught.value.problem.code is ErrorCode.USER_CODE


def test_a_place_for_which_nothing_is_known_ends_with_its_problem(bench: Bench) -> None:
    bench.write(
        TWO_LAYERS
        + """
    def forward(self, x):
        while x.sum() > 1:
            x = self.left(x) * 0.1
        return x
"""
    )
    with pytest.raises(AceError) as caught:
        bench.tried(bench.recipe("export"))
    assert caught.value.problem.code is ErrorCode.NOT_CAPTURED and "while x.sum() > 1" in caught.value.problem.why


# --- nothing of the user's changes ---


def snapshot(folder: Path) -> dict[str, tuple[bytes, int]]:
    # What Python compiles of the user's own files when they are imported is no change of ours.
    files = (path for path in folder.rglob("*") if path.is_file() and path.parent.name != "__pycache__")
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


NEIGHBOUR = """
from pathlib import Path

SCALE = float((Path(__file__).parent / "scale.txt").read_text())


def decide(x, y):
    if x.mean() > 0:
        return x * SCALE
    return y
"""


def test_a_neighbour_is_patched_in_a_copy_and_files_modules_and_paths_stay(bench: Bench) -> None:
    neighbour = bench.write(NEIGHBOUR, "deciding.py")
    (bench.folder / "scale.txt").write_text("3")
    bench.write(
        TWO_LAYERS
        + """
        self.noise = torch.rand(4)

    def forward(self, x):
        from deciding import decide

        return decide(self.left(x), self.right(x) + self.noise)
"""
    )
    before = snapshot(bench.folder)
    where = bench.tried_alone(FixKind.WHERE, bench.recipe("export"))
    assert where.status is FixStatus.GREEN and where.file == str(neighbour)
    assert where.patch.startswith("--- deciding.py\n+++ deciding.py\n")
    assert snapshot(bench.folder) == before
    assert sys.modules["deciding"].__file__ == str(neighbour)
    assert sys.modules["deciding"].decide.__code__.co_filename == str(neighbour)
    assert str(bench.folder) in sys.path and not [entry for entry in sys.path if "ace-fix-" in entry]


def test_a_package_with_relative_imports_is_patched_in_a_copy(bench: Bench) -> None:
    bench.write("", "parts/__init__.py", head="")
    inner = bench.write("def decide(x, y):\n    return x if x.mean() > 0 else y\n", "parts/deciding.py", head="")
    bench.write(
        HEAD.strip()
        + "\nfrom .deciding import decide\n"
        + TWO_LAYERS
        + "\n    def forward(self, x):\n        return decide(self.left(x), self.right(x))\n",
        "parts/net.py",
        head="",
    )
    before = snapshot(bench.folder)
    where = bench.tried_alone(FixKind.WHERE, bench.recipe("export", source="parts/net.py"))
    assert (where.status, where.file) == (FixStatus.GREEN, str(inner))
    assert where.patch.startswith("--- parts/deciding.py\n")
    assert snapshot(bench.folder) == before


def test_a_try_can_be_cancelled_and_leaves_nothing_behind(bench: Bench) -> None:
    path = bench.write(BRANCH)
    before = snapshot(bench.folder)
    events: list[Event] = []
    reporter = Reporter(events.append, is_cancelled=lambda: any(isinstance(event, FixTried) for event in events))
    with pytest.raises(Cancelled):
        bench.tried(bench.recipe("export"), reporter=reporter)
    assert sum(isinstance(event, FixTried) for event in events) == 1
    assert snapshot(bench.folder) == before
    assert sys.modules["net"].Net.forward.__code__.co_filename == str(path)
