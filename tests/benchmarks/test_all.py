"""The run of all benchmarks goes on after one that fails, says what is missing, and keeps what it did not run."""

import msgspec
import pytest

from ace_studio.engine.measure import Ratio
from tests.benchmarks import all as every
from tests.benchmarks.all import Benchmark, _goals, _kept, _peers, main
from tests.benchmarks.bench_scale import of_histories
from tests.benchmarks.bench_start import CODE, Start, figures_of
from tests.benchmarks.figures import Figure, median_of, read
from tests.benchmarks.peers.found import OURS


@pytest.fixture
def benchmarks(monkeypatch):
    """A benchmark that fails, one that gives a figure, and one that needs what nobody has."""
    table = {
        "broken": Benchmark("json.tool", lambda _: [], "{out}"),
        "good": Benchmark("this", lambda _: [Figure(id="good.time", what="zen", value=1.0)], ""),
        "damaged": Benchmark("this", lambda folder: read(folder.with_suffix(".log"))),
        "needy": Benchmark("this", needs=("no_such_package",)),
    }
    monkeypatch.setattr(every, "BENCHMARKS", table)
    monkeypatch.setenv("XDG_DATA_HOME", "")  # main changes it


def test_a_benchmark_that_fails_is_a_lost_figure_and_the_others_go_on(benchmarks, tmp_path, capsys):
    assert main(["--out", str(tmp_path)]) == 1
    found = {one.id: one for one in read(tmp_path / "figures.json")}
    assert [one.id for one in found.values() if one.lost] == ["broken.claims", "damaged.claims"]
    assert "gave no figures" in found["damaged.claims"].what
    assert "needy: left out, it needs no_such_package" in capsys.readouterr().out
    assert "beautiful" in (tmp_path / "good.log").read_text(encoding="utf-8").lower()
    assert all(one.date and one.machine and one.id.split(".")[0] in one.command for one in found.values())


def test_figures_of_benchmarks_that_do_not_run_stay(benchmarks, tmp_path):
    main(["--out", str(tmp_path), "--only", "broken"])
    main(["--out", str(tmp_path), "--only", "good", "--quick"])
    assert [(one.id, one.quick) for one in read(tmp_path / "figures.json")] == [
        ("broken.claims", False), ("good.time", True)
    ]  # fmt: skip


def test_some_rows_of_one_benchmark_are_named_in_its_figures(benchmarks, tmp_path):
    main(["--out", str(tmp_path), "--only", "good", "--rows", "small", "large"])
    (figure,) = read(tmp_path / "figures.json")
    assert figure.what.endswith("; of small, large")
    assert figure.command == "python -m tests.benchmarks.all --only good --rows small large --out DIR"
    with pytest.raises(SystemExit):
        main(["--out", str(tmp_path), "--rows", "small"])


def test_a_start_over_its_limit_and_a_ratio_below_one_are_lost():
    starts = {name: [Start(wall_s=1.2, cpu_s=1.0, rss_mib=99.0)] * 3 for name in (*CODE, "engine")}
    assert [one.id for one in figures_of(starts) if one.lost] == ["start.window.wall_s", "start.window.cpu_s"]
    assert median_of("a", "b", Ratio(0.9, 0.8, 0.95)).lost
    assert not median_of("a", "b", Ratio(0.9, 0.8, 1.05)).lost


def test_a_history_has_a_figure_per_size_and_call():
    assert [one.id for one in of_histories([1, 3], 1)][::3] == ["scale.list.1", "scale.list.3"]


@pytest.mark.parametrize(("gather", "more"), [(_peers, {}), (_kept, {"error": "stopped"})])
def test_lost_models_are_named_and_the_worst_one_has_its_ratio(gather, more, tmp_path):
    ratios = {"net": 1.5, "bert": 0.8}
    rows = [
        {
            "name": name, "fastest_peer": "nncf", "ratio": ratio, "ratio_low": ratio, "ratio_high": ratio,
            "is_as_faithful": True, "fastest": {"peer": "nncf", "ratio": ratio, "low": ratio, "high": ratio},
            "tools": [{"name": OURS, "metric": 1.0}],
        }
        for name, ratio in ratios.items()
    ]  # fmt: skip
    (tmp_path / "summary.json").write_bytes(msgspec.json.encode([rows[0], rows[1] | more]))
    held, worst, ahead = gather(tmp_path)
    assert (held.value, held.unit, held.lost) == (1, "of 2", True)
    assert held.what.endswith("; lost: bert")
    assert (worst.value, worst.peer, worst.lost) == (0.8, "nncf", True)
    assert (ahead.value, ahead.unit) == (1, "of 2")


def test_a_goal_is_held_only_if_it_is_met_in_no_more_evaluations_and_as_fast(tmp_path):
    good = {"case": "good", "met": True, "fewer": True, "as_fast": True}
    rows = [good, *(good | {"case": name, name: False} for name in ("met", "fewer", "as_fast"))]
    (tmp_path / "summary.json").write_bytes(msgspec.json.encode(rows))
    (held,) = _goals(tmp_path)
    assert (held.value, held.unit, held.lost) == (1, "of 4", True)
    assert held.what.endswith("; lost: met, fewer, as_fast")
