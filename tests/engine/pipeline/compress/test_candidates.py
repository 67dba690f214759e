"""Which plans are tried, and which finished run is chosen."""

import msgspec
import pytest

from ace_studio.engine.pipeline.compress import candidates
from ace_studio.records.recipes.plan import Plan, Precision
from ace_studio.records.recipes.recipe import Goal, Objective, Recipe
from ace_studio.records.results import Baseline, Latency, RunStatus, TargetRun


def latency(p50):
    return Latency(p10=p50 * 0.9, p50=p50, p90=p50 * 1.1, n=10)


def run(name="onnxruntime", *, ms=1.0, size=100, drop=0.0, sqnr=30.0, verified=True, status=RunStatus.OK):
    return TargetRun(
        target=name, status=status, latency_ms=latency(ms), speedup=10.0 / ms, metric=0.9, metric_drop=drop,
        sqnr_db=sqnr, size_bytes=size, verified=verified,
    )  # fmt: skip


BASELINE = Baseline(latency_ms=latency(10.0), metric=0.9, size_bytes=400)


def test_the_fastest_run_that_meets_the_goal_is_chosen():
    runs = [run(ms=3.0), run(ms=1.0, drop=0.05), run(ms=2.0, drop=0.005)]
    assert candidates.choose(runs, BASELINE, Goal(max_drop=0.01)) == (2, True)


def test_the_smallest_or_the_most_accurate_is_chosen_when_that_is_the_objective():
    runs = [run(ms=1.0, size=90, drop=0.009), run(ms=2.0, size=50, drop=0.008), run(ms=3.0, size=99, drop=0.0)]
    assert candidates.choose(runs, BASELINE, Goal(max_drop=0.01, optimize=Objective.SIZE)) == (1, True)
    assert candidates.choose(runs, BASELINE, Goal(max_drop=0.01, optimize=Objective.ACCURACY)) == (2, True)


def test_of_runs_that_are_equally_fast_the_most_accurate_is_chosen():
    runs = [run(ms=1.0, sqnr=10.0), run(ms=1.01, sqnr=30.0), run(ms=1.03, sqnr=50.0)]
    assert candidates.choose(runs, BASELINE, Goal()) == (1, None)
    assert candidates.choose(runs, BASELINE, Goal(min_sqnr_db=5.0)) == (1, True)
    assert candidates.choose(runs, BASELINE, Goal(min_sqnr_db=60.0)) == (2, False)
    exact = [msgspec.structs.replace(one, precision=Precision.FP32) for one in runs]
    assert candidates.choose(exact, BASELINE, Goal())[0] == 0
    assert candidates.choose([*runs, exact[1]], BASELINE, Goal())[0] == 1


def test_a_run_that_was_not_verified_never_wins():
    runs = [run(ms=1.0, verified=False), run(ms=2.0)]
    assert candidates.choose(runs, BASELINE, Goal()) == (1, None)


def test_without_any_verified_run_nothing_is_chosen():
    runs = [run(status=RunStatus.FAILED), run(verified=False)]
    assert candidates.choose(runs, BASELINE, Goal()) == (None, None)
    assert candidates.choose(runs, BASELINE, Goal(max_drop=0.1)) == (None, False)


def test_an_unreachable_goal_gives_the_best_found_and_says_so():
    runs = [run(ms=1.0, drop=0.3), run(ms=5.0, drop=0.1)]
    assert candidates.choose(runs, BASELINE, Goal(max_drop=0.01)) == (1, False)


def test_the_speed_up_of_interleaved_rounds_decides_about_latency_not_the_medians():
    noisy = msgspec.structs.replace(run(ms=7.2), speedup=1.45)
    assert candidates.choose([noisy], BASELINE, Goal(max_latency_ratio=0.7)) == (0, True)


def test_an_exact_run_that_another_beats_everywhere_gives_way_to_that_one():
    best = timed("ov", "int8-static", FAST, over_float=(0.9, 1.01, 1.1))
    exact = timed("ov", "fp32", (1.9, 1.98, 2.1), sqnr=120.0)
    other = timed("onnxruntime", "fp32", (1.9, 1.99, 2.1), sqnr=120.0)
    chosen, why = exact_choice(best, exact, other)
    assert chosen == 2
    assert why.endswith("; in no figure is it worse than ov fp32")
    as_exact = msgspec.structs.replace(best, sqnr_db=120.0)
    assert exact_choice(as_exact, exact)[0] == 0
    half = [msgspec.structs.replace(one, agreement=share) for one, share in ((as_exact, 0.5), (exact, 1.0))]
    assert exact_choice(*half)[0] == 1


def test_where_the_goal_is_missed_the_nearest_run_stays_chosen():
    small = timed("ov", "int8-static", FAST, over_float=(0.7, 0.8, 0.9), size=250)
    large = timed("ov", "fp32", FAST, size=400, sqnr=120.0)
    assert exact_choice(small, large, goal=Goal(max_size_mb=0.0002)) == (0, "")


def test_a_given_plan_is_tried_as_it_is():
    plan = Plan(default=Precision.INT8_STATIC)
    assert candidates.first_plans(Recipe(plan=plan)) == [plan]


def test_a_goal_without_a_plan_searches_and_no_goal_means_fp32():
    searched = candidates.first_plans(Recipe(goal=Goal(max_drop=0.01)))
    assert [one.default for one in searched] == list(candidates.SEARCH_ORDER)
    assert [one.default for one in candidates.first_plans(Recipe())] == [Precision.FP32]
    without = candidates.first_plans(Recipe(goal=Goal(max_drop=0.01)), has_data=False)
    assert not any(one.needs_calibration for one in without) and len(without) == len(searched) - 1


def test_the_pareto_front_leaves_out_what_another_run_beats_in_everything():
    runs = [run(ms=1.0, size=100, drop=0.01), run(ms=2.0, size=50, drop=0.0), run(ms=3.0, size=120, drop=0.02)]
    assert [point.on_front for point in candidates.pareto_points(runs, BASELINE)] == [True, True, False]


@pytest.mark.parametrize("goal", [Goal(max_drop=0.1, optimize=Objective.SIZE), Goal(max_size_mb=1.0)])
def test_a_goal_about_size_tries_four_bit_weights_too(goal):
    plans = candidates.first_plans(Recipe(goal=goal))
    assert plans[0].default is Precision.INT4_WEIGHT
    assert Precision.INT4_WEIGHT not in {
        plan.default for plan in candidates.first_plans(Recipe(goal=Goal(max_drop=0.1)))
    }


def timed(name, precision, over_original, *, over_float=None, **changes):
    """A run with two speed-ups, each as low, median and high."""
    low, median, high = over_original
    lowest, middle, highest = over_float or (None, None, None)
    return msgspec.structs.replace(
        run(name, **changes), precision=precision, speedup=median, speedup_low=low, speedup_high=high,
        float_speedup=middle, float_speedup_low=lowest, float_speedup_high=highest,
    )  # fmt: skip


def exact_choice(best, *others, goal=None):
    runs = [best, *others]
    return candidates.prefer_exact(0, runs, BASELINE, goal or Goal(max_drop=0.01), original="eager")


FAST = (1.9, 2.0, 2.1)


@pytest.mark.parametrize(
    ("over_float", "taken"),
    [((1.05, 1.1, 1.2), 0), ((1.005, 1.01, 1.015), 1), ((0.9, 1.1, 1.3), 1), ((0.7, 0.8, 0.9), 1)],
)
def test_what_is_not_clearly_faster_than_float_in_the_same_runtime_gives_way_to_it(over_float, taken):
    chosen, why = exact_choice(timed("ov", "int8-static", FAST, over_float=over_float), timed("ov", "fp32", FAST))
    assert chosen == taken
    speed = "no difference seen" if over_float[0] <= 1 <= over_float[2] else f"{over_float[1]:.2f}x"
    words = f"{speed} ({over_float[0]:.2f} - {over_float[2]:.2f})"
    assert why == (f"ov int8-static is not clearly faster than ov fp32, {words}" if taken else "")


def test_what_is_slower_than_the_original_gives_way_to_it_also_if_it_is_float():
    slow, unclear = (0.7, 0.8, 0.9), (0.98, 1.03, 1.1)
    eager = timed("eager", "fp32", (0.99, 1.0, 1.01), sqnr=140.0)
    assert exact_choice(timed("ov", "fp32", unclear), eager)[0] == 1
    chosen, why = exact_choice(
        timed("ov", "int8-static", slow, over_float=(0.8, 0.9, 0.95)), timed("ov", "fp32", slow, sqnr=120.0), eager
    )
    assert chosen == 2
    assert "int8-static is not clearly faster than ov fp32" in why
    assert "; ov fp32 is not clearly faster than the original, 0.80x" in why


def test_a_float_run_that_misses_a_bound_or_was_not_verified_is_not_taken_instead():
    low = timed("ov", "int8-static", FAST, over_float=(0.7, 0.8, 0.9), size=100)
    large = timed("ov", "fp32", FAST, size=400)
    assert exact_choice(low, large, goal=Goal(max_size_mb=0.0002)) == (0, "")
    assert exact_choice(low, msgspec.structs.replace(large, verified=False)) == (0, "")


def test_what_is_clearly_slower_is_said_and_what_is_unclear_is_not():
    slow = timed("ov", "int8-static", (0.7, 0.8, 0.9), over_float=(0.5, 0.6, 0.7))
    assert candidates.slower_words(slow) == "the original (0.80x) and fp32 there (0.60x)"
    assert candidates.slower_words(timed("ov", "int8-static", (0.9, 0.97, 1.02))) == ""
