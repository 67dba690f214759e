"""The comparison with peers times what was left on disk, and its verdict can fail."""

import msgspec
import pytest
import torch

from ace_studio.engine.measure import Samples
from ace_studio.records.processor import int8_weight_bits
from tests.benchmarks.bench_peers import in_words, table
from tests.benchmarks.peers import one_row
from tests.benchmarks.peers.found import EAGER, OURS, PeerFound, ToolFound, give_verdict
from tests.benchmarks.peers.fresh import FreshTimes, gathered, time_freshly
from tests.benchmarks.peers.one_row import Comparison
from tests.benchmarks.peers.one_timing import Timed, time_lineup, whole_turns
from tests.benchmarks.peers.opening import Left, eager, open_left, write_lineup, write_module
from tests.benchmarks.peers.pooling import cpu_share, pooled_ratio
from tests.benchmarks.peers.row import PeerRow
from tests.benchmarks.peers.tools import PEERS
from tests.tiny_models import conv_net

ROUNDS = 12


def rounds(ms, *, seed=0, noise=0.002):
    generator = torch.Generator().manual_seed(seed)
    wall = [ms * (1 + noise * float(torch.randn(1, generator=generator))) for _ in range(ROUNDS)]
    return Samples(wall_ms=wall, cpu_ms=wall)


def processes_of(*ms):
    return [rounds(one, seed=number) for number, one in enumerate(ms)]


def times(ours, **peers):
    samples = {EAGER: processes_of(*[50.0] * 5), OURS: processes_of(*ours)}
    return FreshTimes(samples=samples | {name: processes_of(*ms) for name, ms in peers.items()}, errors={})


def found(*peers, **ours):
    tools = [ToolFound(name=EAGER), ToolFound(name=OURS, **ours), *peers]
    return PeerFound(name="a row", tools=tools)


def test_the_pooled_ratio_is_the_median_of_the_processes_and_its_interval_reaches_over_them():
    ratio = pooled_ratio(processes_of(*[10.0] * 5), processes_of(10.5, 9.9, 10.0, 10.2, 9.8))
    assert ratio.median == pytest.approx(1.0, abs=0.005)
    assert ratio.low == pytest.approx(10 / 10.5, abs=0.01)
    assert ratio.high == pytest.approx(10 / 9.8, abs=0.01)
    assert ratio.per_process == pytest.approx((0.952, 1.01, 1.0, 0.98, 1.02), abs=0.005)


def test_a_thousand_rounds_of_processes_that_differ_say_no_more_than_the_processes():
    alike = pooled_ratio(processes_of(*[10.0] * 5), processes_of(*[9.9] * 5))
    differing = pooled_ratio(processes_of(*[10.0] * 5), processes_of(9.3, 9.6, 9.9, 10.2, 10.5))
    assert alike.median == pytest.approx(differing.median, abs=0.005)
    assert alike.low > 1.0 > differing.low


def test_rounds_count_where_there_is_one_process():
    ratio = pooled_ratio([rounds(10.0, noise=0.1)], [rounds(10.0, seed=1, noise=0.1)])
    assert ratio.low < ratio.median < ratio.high


def test_a_few_long_waits_lower_the_share_of_the_core():
    quiet, waited = Samples(wall_ms=[1.0] * 9, cpu_ms=[1.0] * 9), Samples(wall_ms=[10.0], cpu_ms=[1.0])
    assert cpu_share([quiet]) == 1.0
    assert cpu_share([quiet, waited]) == pytest.approx(10 / 19)


def test_no_process_has_no_ratio():
    with pytest.raises(ValueError, match="no process"):
        pooled_ratio([], [])


def test_the_verdict_is_about_the_peer_that_ours_looks_worst_beside():
    row = found(ToolFound(name="quick", sqnr_db=20.0), ToolFound(name="slow", sqnr_db=60.0), sqnr_db=30.0)
    give_verdict(row, times([10.0] * 5, quick=[10.5] * 5, slow=[20.0] * 5))
    assert (row.fastest_peer, row.is_as_fast, row.is_faster, row.is_as_faithful) == ("quick", True, True, True)
    assert row.tool(OURS).speedup == pytest.approx(5.0, rel=0.01)
    assert "faster than quick: 1.05" in in_words(row)
    assert f"| **{OURS}** | 10 |" in table([row])
    assert "theirs for 100% of the time" in table([row])


def test_ours_is_slower_where_it_is_slower_in_every_process():
    row = found(ToolFound(name="quick", sqnr_db=30.0), sqnr_db=20.0)
    give_verdict(row, times([10.3, 10.2, 10.4, 10.2, 10.3], quick=[10.0] * 5))
    assert not row.is_as_fast
    assert "SLOWER than quick" in in_words(row)
    assert "LESS FAITHFUL" in in_words(row)


def test_a_difference_that_turns_round_from_process_to_process_is_none():
    row = found(ToolFound(name="quick", metric=0.9), metric=0.9)
    give_verdict(row, times([10.3, 9.8, 10.2, 9.9, 10.1], quick=[10.0] * 5))
    assert (row.is_as_fast, row.is_faster, row.is_as_faithful) == (True, False, True)


def test_a_peer_that_fails_in_one_fresh_process_is_not_timed_and_ours_must_not_fail():
    whole = {EAGER: rounds(5.0), OURS: rounds(1.0), "quick": rounds(2.0), "odd": rounds(0.5)}
    rest = {name: one for name, one in whole.items() if name != "odd"}
    both = gathered([Timed(samples=whole, errors={}), Timed(samples=rest, errors={"odd": "RuntimeError: no"})])
    row = found(ToolFound(name="quick"), ToolFound(name="odd"))
    give_verdict(row, both)
    assert (row.fastest_peer, row.tool("odd").error, row.tool("odd").ms) == ("quick", "RuntimeError: no", None)
    broken = FreshTimes(samples={EAGER: processes_of(5.0), "quick": processes_of(2.0)}, errors={OURS: "ValueError: no"})
    with pytest.raises(RuntimeError, match="ValueError: no"):
        give_verdict(row, broken)


def test_everybody_follows_everybody_else_equally_often():
    assert [whole_turns(30, count) for count in (4, 5, 7)] == [32, 30, 42]


def tiny_row():
    model = conv_net()
    calls = [tuple(one) if isinstance(one, tuple) else (one,) for one in model.examples]
    return PeerRow("tiny", model.module, calls, calls)


def lineup(folder):
    row = tiny_row()
    tools = {
        EAGER: write_module(row.module, folder / "eager.pt", kind="eager module"),
        "odd": Left(kind="bare openvino", path=str(folder / "missing.xml")),
    }
    write_lineup(folder, tools, first=row.calibration[-1], timed=row.held_out[0])
    return row


def test_a_line_up_is_timed_from_its_files_and_says_what_could_not_be_opened(tmp_path):
    lineup(tmp_path)
    timed = time_lineup(tmp_path, turn=1, rounds=4)
    assert list(timed.samples) == [EAGER]
    assert len(timed.samples[EAGER].wall_ms) == 4
    assert timed.errors["odd"].startswith("RuntimeError")


@pytest.mark.parametrize(
    "peer", ["NNCF + OpenVINO int8", "ONNX Runtime static int8", "torchao PT2E int8", "torchao int8 weights"]
)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.full  # a peer that does not run is seen by whoever asks for the benchmark
@pytest.mark.slow
def test_what_a_peer_leaves_computes_nearly_the_same_when_it_is_opened(peer, tmp_path):
    row = tiny_row()
    run = open_left(PEERS[peer](row, tmp_path), row.held_out[0])
    (wanted,), (given,) = eager(row.module)(*row.held_out[0]), run(*row.held_out[0])
    # By their books the peers store 8 bits, with which products saturate on some processors.
    assert (given - wanted).norm() < (0.1 if int8_weight_bits() == 8 else 0.9) * wanted.norm()


@pytest.mark.slow
def test_fresh_processes_time_the_same_files(tmp_path):
    lineup(tmp_path)
    times = time_freshly(tmp_path, processes=2, rounds=4)
    assert [len(one.wall_ms) for one in times.samples[EAGER]] == [4, 4]
    (tmp_path / "calls.pt").unlink()
    with pytest.raises(RuntimeError, match="FileNotFoundError"):
        time_freshly(tmp_path, processes=1, rounds=4)


def test_ours_is_built_again_for_a_peer_that_turns_out_to_be_the_fastest(tmp_path, monkeypatch):
    faith = {"rough": 20.0, "exact": 40.0}
    asked = []

    def build(row, goal, folder, *, rounds):
        asked.append(goal["min_sqnr_db"])
        return Left(kind="ours", path=str(goal["min_sqnr_db"])), "a choice"

    def judge(row, run, tool):
        tool.sqnr_db = run

    def time_left(folder, *, processes, rounds):
        if processes == 1:  # a glance, in which the rough one looks faster
            return FreshTimes(
                samples={EAGER: processes_of(50.0), "rough": processes_of(9.9), "exact": processes_of(10)}, errors={}
            )
        return times([9.5] * processes, rough=[10.5] * processes, exact=[10.0] * processes)

    monkeypatch.setattr(
        one_row,
        "PEERS",
        {name: lambda row, folder, name=name: Left(kind="peer", path=str(faith[name])) for name in faith},
    )
    monkeypatch.setattr(one_row, "open_left", lambda left, first: float(left.path))
    monkeypatch.setattr(one_row, "judge", judge)
    monkeypatch.setattr(one_row, "build_ours", build)
    monkeypatch.setattr(one_row, "time_freshly", time_left)
    noted = []
    comparison = Comparison(
        tiny_row(), tmp_path, rounds=4, processes=5, note=lambda row: noted.append(msgspec.json.encode(row))
    )
    row = comparison.run(list(faith))
    assert asked == [20.0, 40.0]
    assert (row.fastest_peer, row.is_faster, row.is_as_faithful) == ("exact", True, True)
    assert msgspec.json.decode(noted[-1], type=PeerFound) == row
