"""The integer program: the cheapest mixture within bounds, with conversions between unlike neighbours paid for."""

import itertools
import random

import pytest

from ace_studio.engine.pipeline.compress.search.mixture import Border, Choice, DecisionGroup, Least, Limits, Mixture
from ace_studio.records.recipes.plan import Precision

STATIC, DYNAMIC, BF16, FP32 = Precision.INT8_STATIC, Precision.INT8_DYNAMIC, Precision.BF16, Precision.FP32


def _group(name, low_time, high_time, noise, *, low=STATIC):
    return DecisionGroup((name,), (Choice(low, noise, low_time, 1.0), Choice(FP32, 0.0, high_time, 4.0)))


def _drawn(count=6, seed=0):
    draw = random.Random(seed)
    groups = [
        DecisionGroup(
            (f"op{i}",),
            (
                Choice(STATIC, 10 ** draw.uniform(-6, -2), draw.uniform(0.01, 0.05), 1.0),
                Choice(DYNAMIC, 10 ** draw.uniform(-7, -3), draw.uniform(0.02, 0.08), 1.0),
                Choice(FP32, 0.0, draw.uniform(0.05, 0.2), 4.0),
            ),
        )
        for i in range(count)
    ]
    return Mixture(tuple(groups), tuple(Border(i, i + 1, draw.uniform(0.0, 0.03)) for i in range(count - 1)), 0.1, 7.0)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("least", list(Least))
def test_no_mixture_within_the_limits_is_better(seed, least):
    mixture = _drawn(seed=seed)
    limits = Limits(noise=2e-3, time=0.75, bytes=24.0)
    solution = mixture.solve(least, limits)
    allowed = [
        one
        for chosen in itertools.product(range(3), repeat=6)
        if (one := mixture.of(chosen)).noise <= 2e-3 and one.time <= 0.75 and one.bytes <= 24.0
    ]
    best = min((one.figure(least) for one in allowed), default=None)
    if best is None:
        assert solution is None
    else:
        assert solution.noise <= 2e-3 * (1 + 1e-6)
        assert solution.time <= 0.75 * (1 + 1e-6)
        assert solution.bytes <= 24.0
        worthwhile = 1.02 if least is Least.TIME else 1.0
        assert solution.figure(least) <= best * worthwhile * 1.0002 + 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_no_set_of_regions_is_low_that_is_not_worthwhile_with_its_conversions(seed):
    draw = random.Random(seed)
    groups = tuple(_group(f"op{i}", draw.uniform(0.095, 0.105), 0.1, 1e-9) for i in range(7))
    mixture = Mixture(groups, tuple(Border(i, i + 1, draw.uniform(0.0, 0.003)) for i in range(6)))
    chosen = mixture.solve(Least.TIME, Limits()).chosen
    low = [at for at, one in enumerate(chosen) if one == 0]
    spared = [at for at, one in enumerate(chosen) if one == 1]
    assert low or spared
    for count in range(1, len(low) + 1):
        for some in itertools.combinations(low, count):
            exact = mixture.of([1 if at in some else one for at, one in enumerate(chosen)])
            gained = exact.time - mixture.of(chosen).time
            assert gained >= 0.02 * sum(groups[at].choices[0].time for at in some) - 1e-4


def test_what_is_hardly_faster_stays_exact_and_is_counted():
    hardly = [_group(f"op{i}", 0.0999, 0.1, 1e-9) for i in range(5)]
    assert Mixture(tuple(hardly)).solve(Least.TIME, Limits()).chosen == (1,) * 5
    mixture = Mixture((*hardly[:2], _group("fast", 0.05, 0.1, 1e-9), DecisionGroup(("x",), (Choice(FP32, 0.0, 0.1),))))
    assert mixture.unpaid() == (0, 1)
    assert mixture.solve(Least.BYTES, Limits()).chosen == (0, 0, 0, 0)


def test_what_is_not_faster_stays_exact_even_where_noise_is_free():
    mixture = Mixture((_group("slow", 0.3, 0.2, 1e-9), _group("fast", 0.1, 0.4, 1e-9)))
    assert mixture.assigned(mixture.solve(Least.TIME, Limits(noise=1.0)).chosen) == {"slow": FP32, "fast": STATIC}


def test_an_op_between_others_follows_them_where_two_conversions_cost_more_than_it_gains():
    groups = (_group("a", 0.1, 0.4, 1e-6), _group("b", 0.2, 0.19, 1e-6), _group("c", 0.1, 0.4, 1e-6))
    borders = (Border(0, 1, 0.02), Border(1, 2, 0.02))
    assert Mixture(groups, borders).solve(Least.TIME, Limits()).chosen == (0, 0, 0)
    assert Mixture(groups).solve(Least.TIME, Limits()).chosen == (0, 1, 0)
    cheap = Mixture(groups, borders).corrected(borders=0.1)
    assert cheap.solve(Least.TIME, Limits()).borders == pytest.approx(0.004)


def test_ops_that_take_and_give_floats_have_no_border_to_float():
    groups = (_group("a", 0.1, 0.4, 1e-6, low=DYNAMIC), _group("b", 0.4, 0.1, 1e-6, low=DYNAMIC))
    solution = Mixture(groups, (Border(0, 1, 9.0),)).solve(Least.TIME, Limits())
    assert (solution.chosen, solution.borders) == ((0, 1), 0.0)


def test_what_no_mixture_keeps_has_no_solution():
    mixture = Mixture((DecisionGroup(("a",), (Choice(STATIC, 1e-3, 0.1, 1.0), Choice(BF16, 1e-4, 0.2, 2.0))),))
    assert mixture.solve(Least.TIME, Limits(noise=1e-5)) is None
    assert mixture.solve(Least.NOISE, Limits(bytes=0.5)) is None
    assert mixture.solve(Least.TIME, Limits(noise=5e-4)).chosen == (1,)


def test_noise_far_above_the_limit_does_not_hide_small_noise_from_the_solver():
    """An op that alone is a million times too noisy stands beside ones that only together are too noisy."""
    quiet = [_group(f"q{i}", 0.01, 0.02, 3e-7) for i in range(5)]
    mixture = Mixture((_group("loud", 0.01, 0.9, 1.0), *quiet))
    solution = mixture.solve(Least.TIME, Limits(noise=1e-6))
    assert solution.chosen[0] == 1
    assert sum(at == 0 for at in solution.chosen[1:]) == 3


def test_all_at_one_precision_takes_the_most_exact_where_a_group_has_it_not():
    only_static = _group("a", 0.1, 0.2, 1e-3)
    mixture = Mixture((only_static, _group("b", 0.1, 0.2, 1e-3, low=DYNAMIC)))
    assert mixture.uniform(STATIC) == (0, 1)
    assert mixture.uniform(FP32) == (1, 1)


def test_a_correction_of_the_noise_holds_for_its_precision_only():
    mixture = Mixture((_group("a", 0.1, 0.2, 1e-3), _group("b", 0.1, 0.2, 1e-3, low=DYNAMIC)))
    corrected = mixture.corrected(noise={STATIC: 10.0})
    assert corrected.of((0, 0)).noise == pytest.approx(1.1e-2)


def test_a_thousand_groups_are_solved_within_the_time_limit():
    solution = _drawn(1000, seed=5).solve(Least.TIME, Limits(noise=1e-2))
    assert solution is not None
    assert solution.noise <= 1e-2 * (1 + 1e-6)
