"""The benchmark of capture keeps working, and its claims can fail."""

import msgspec
import pytest

from tests.benchmarks import bench_capture
from tests.benchmarks.bench_capture import Summary, summarize
from tests.benchmarks.capture_row import LadderFound, RowFound, ToolFound
from tests.benchmarks.zoo import ROWS


def row(name, *, ladder=None, ratio=None, proven=False):
    tool = ToolFound(captured=True, proven=proven)
    return RowFound(name=name, family="torch.nn", ours=ladder, ratio=ratio, bare={"export": tool})


WHOLE = LadderFound(rung="export", ops=3, is_exact=True)
SUBGRAPHS = LadderFound(rung="partial", ops=3, subgraphs=2, captured_subgraphs=1)


def claim(found, words, **options):
    claims = summarize(found, is_complete=True, **options).claims
    return next(one for one in claims if words in one.text)


def test_the_zoo_has_rows_of_every_family_and_every_row_differs_in_a_size():
    assert len(ROWS) >= bench_capture.FEWEST_ROWS
    assert {one.family for one in ROWS.values()} == {"torchvision", "timm", "transformers", "torch.nn", "awkward"}
    assert all(len(set(one.sizes)) > 1 and one.unseen not in one.sizes for one in ROWS.values())


def test_a_row_without_a_captured_subgraph_breaks_the_claim_about_the_rest():
    assert claim([row("a", ladder=WHOLE), row("b", ladder=SUBGRAPHS)], "the rest").holds
    lost = LadderFound(rung="partial", subgraphs=2, captured_subgraphs=0)
    assert not claim([row("a", ladder=WHOLE), row("b", ladder=lost)], "the rest").holds
    assert not claim([row("a", ladder=WHOLE), row("b")], "the rest").holds


def test_subgraphs_with_other_results_than_eager_break_the_claim_about_the_rest():
    wrong = msgspec.structs.replace(SUBGRAPHS, unequal="unseen: output 0 differs")
    assert not claim([row("a", ladder=wrong)], "the rest").holds


def test_whole_graphs_are_claimed_only_where_they_are_more_than_all_tools_give_together():
    both = [row("a", ladder=WHOLE, proven=True), row("b", ladder=WHOLE)]
    wrong = msgspec.structs.replace(WHOLE, is_exact=False)
    for words in ("any single tool", "all tools together"):
        assert claim(both, words).holds
        assert not claim([row("a", ladder=WHOLE, proven=True)], words).holds
        assert not claim([row("a", ladder=WHOLE, proven=True), row("b", ladder=wrong)], words).holds


def test_a_slow_median_breaks_the_claim_about_seconds():
    assert claim([row("a", ladder=WHOLE, ratio=1.1)], "median seconds").holds
    assert not claim([row("a", ladder=WHOLE, ratio=1.2)], "median seconds").holds


@pytest.mark.full  # a benchmark that does not run is seen by whoever asks for it
@pytest.mark.slow
@pytest.mark.timeout(280)
def test_a_few_rows_are_captured_whole_and_the_benchmark_writes_what_it_found(tmp_path):
    names = ["mlp", "lstm", "dataclass_out"]
    bench_capture.main(["--out", str(tmp_path), "--only", *names])
    summary = msgspec.json.decode((tmp_path / "summary.json").read_bytes(), type=Summary)
    assert (summary.rows, summary.whole) == (len(names), len(names))
    assert summary.proven_by_tool["export"] < len(names)  # by hand neither the LSTM nor the dataclass
    assert all(f"| {name} |" in (tmp_path / "table.md").read_text() for name in names)
