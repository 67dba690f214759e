"""What well-known pages about tracing show, written anew: some fix is tried and green, or it is said why none is."""

from pathlib import Path

import pytest

from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.fixes import FixKind, FixReport, FixStatus
from tests.engine.pipeline.fixes.test_run import HOOK, Bench, of_kind

SUM_DECIDES = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 10)

    def forward(self, x):
        if x.sum() > 0:
            return self.linear(x)
        else:
            return x.new_zeros(x.shape[0], 10)
"""
SIZE_DECIDES = """
class Net(nn.Module):
    def forward(self, x):
        dim0 = x.size(0)
        if dim0 == 3:
            return torch.relu(x)
        else:
            return torch.neg(x)
"""
EARLY_EXIT = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        y = torch.sigmoid(self.first(x))
        if y.max() > 0.9:
            return y
        return torch.sigmoid(self.second(y))
"""


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def green(fixes: list[FixReport]) -> set[FixKind]:
    return {fix.kind for fix in fixes if fix.status is FixStatus.GREEN}


def test_a_branch_on_a_sum_is_rewritten_in_both_ways_and_not_as_the_product_that_a_page_advises(bench: Bench) -> None:
    bench.write(SUM_DECIDES)
    fixes = bench.tried(bench.recipe("export"))
    assert green(fixes) == {FixKind.WHERE, FixKind.COND}
    assert "torch.where(" in of_kind(fixes, FixKind.WHERE).patch and "torch.cond(" in of_kind(fixes, FixKind.COND).patch
    added = [line for fix in fixes for line in fix.patch.splitlines() if line.startswith("+")]
    assert not [line for line in added if " * " in line]


def test_early_exit_is_rewritten(bench: Bench) -> None:
    bench.write(EARLY_EXIT)
    assert bench.tried_alone(FixKind.WHERE, bench.recipe("export")).status is FixStatus.GREEN


def test_a_branch_on_one_size_is_no_branch_on_a_value_and_where_says_so(bench: Bench) -> None:
    bench.write(SIZE_DECIDES)
    fixes = bench.tried(bench.recipe("export", rows=((3, 4), (5, 4))))
    where = of_kind(fixes, FixKind.WHERE)
    assert (
        where.status is FixStatus.FAILED
        and where.problem is not None
        and "a plain truth value of Python" in where.problem.why
    )
    constant = of_kind(fixes, FixKind.CONSTANT)
    assert constant.problem is not None and "not the same on all examples: 3, 5" in constant.problem.why
    assert all(fix.problem is not None for fix in fixes if fix.status is not FixStatus.GREEN)


def test_square_brackets_behind_size_are_no_matter_for_a_fix(bench: Bench) -> None:
    bench.write(SIZE_DECIDES.replace("x.size(0)", "x.size[0]"))
    with pytest.raises(AceError) as caught:
        bench.tried(bench.recipe("export"))
    assert caught.value.problem.code is ErrorCode.USER_CODE and "x.size(0)" in caught.value.problem.remedy


def test_the_import_that_no_release_has_is_told_so_and_nothing_is_tried(bench: Bench) -> None:
    bench.write("from torch.compiler import torchdynamo\n" + HOOK)
    with pytest.raises(AceError) as caught:
        bench.tried(bench.recipe("export"))
    assert "no current release has it" in caught.value.problem.why
    assert "add a control to the recipe" in caught.value.problem.remedy
