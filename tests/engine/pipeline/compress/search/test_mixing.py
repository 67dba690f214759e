"""The search over mixtures: few builds, each better than what was known by the program, corrected by what they show."""

import itertools
import math
import random
from dataclasses import replace

import pytest

from ace_studio.engine.pipeline.compress.search.mixing import (
    FRONT_POINTS,
    MOST_EVALUATIONS,
    Evaluation,
    find_mixtures,
    front_of,
)
from ace_studio.engine.pipeline.compress.search.mixture import Border, Choice, DecisionGroup, Least, Limits, Mixture
from ace_studio.engine.pipeline.compress.search.simulated import Expectations
from ace_studio.engine.quantize.fidelity import decibels
from ace_studio.records.recipes.plan import Precision

LOW, HIGH = Precision.INT8_STATIC, Precision.FP32


def _mixture(count=54, seed=0, border=0.0):
    draw = random.Random(seed)
    groups = tuple(
        DecisionGroup((f"op{i}",), (Choice(LOW, 10 ** draw.uniform(-6, -1), 0.004, 1.0), Choice(HIGH, 0.0, 0.016, 4.0)))
        for i in range(count)
    )
    return Mixture(groups, tuple(Border(i, i + 1, border) for i in range(count - 1)))


class Model:
    """A model whose noises add up nearly, with what the scan cannot know."""

    def __init__(self, mixture, *, needed_db=-200.0, extra_db=0.0, border_factor=1.0, most_time=9.0):
        self.mixture, self.needed_db, self.extra_db = mixture, needed_db, extra_db
        self.real, self.most_time = mixture.corrected(borders=border_factor), most_time
        self.built = []

    def judged(self, chosen):
        one = self.real.of(chosen)
        fidelity = decibels(1.0, one.noise) + (self.extra_db if one.noise else 0.0)
        return Evaluation(
            is_accurate=fidelity >= self.needed_db, is_affordable=one.time <= self.most_time,
            sqnr_db=fidelity, time=one.time, bytes=one.bytes,
        )  # fmt: skip

    def __call__(self, solution):
        self.built.append(solution)
        return self.judged(solution.chosen)

    @property
    def known(self):
        return {chosen: self.judged(chosen) for chosen in (self.mixture.uniform(LOW), self.mixture.uniform(HIGH))}

    def best(self, least=Least.TIME):
        judged = [*self.known.values(), *(self.judged(one.chosen) for one in self.built)]
        return min(one.figure(least) for one in judged if one.is_accurate and one.is_affordable)


def _search(model, *, least=Least.TIME, limits=None, min_db=None, rival=math.inf):
    find_mixtures(model.mixture, model.known, model, least=least, limits=limits or Limits(), min_db=min_db, rival=rival)
    return model


@pytest.mark.parametrize("extra_db", [-4.0, 0.0, 6.0])
@pytest.mark.parametrize("needed_db", [20.0, 30.0, 45.0])
def test_a_fidelity_is_reached_within_a_few_builds_at_nearly_the_lowest_time(needed_db, extra_db):
    mixture = _mixture()
    model = _search(Model(mixture, needed_db=needed_db, extra_db=extra_db), min_db=needed_db)
    optimum = mixture.solve(Least.TIME, Limits(noise=10 ** (-(needed_db - extra_db) / 10)))
    assert model.best() <= optimum.time * 1.04
    assert len(model.built) <= 3


class Stiff(Model):
    """A model whose fidelity follows the predicted one only in part, as where the noises are not independent."""

    def judged(self, chosen):
        return replace(
            one := super().judged(chosen),
            sqnr_db=(fidelity := 18.0 + 0.35 * (one.sqnr_db - 18.0)),
            is_accurate=fidelity >= self.needed_db,
        )


def test_where_a_step_gains_less_than_it_was_asked_for_the_next_one_asks_for_more():
    model = _search(Stiff(_mixture(), needed_db=22.0), min_db=22.0)
    found = [model.judged(one.chosen).is_accurate for one in model.built]
    assert found.index(True) <= 2
    optimum = model.mixture.solve(Least.TIME, Limits(noise=10 ** (-(18.0 + 4.0 / 0.35) / 10)))
    assert model.best() <= optimum.time * 1.04


class Entangled(Model):
    """A model in which two low neighbours lose much more than both alone, and kernels lose another part of a dB."""

    KERNELS_DB = -0.8

    def simulated_db(self, chosen):
        groups = self.mixture.groups
        noises = [group.choices[at].noise for group, at in zip(groups, chosen, strict=True)]
        between = sum(3.0 * math.sqrt(a * b) for a, b in itertools.pairwise(noises))
        return decibels(1.0, sum(noises) + between)

    def judged(self, chosen):
        fidelity = self.simulated_db(chosen) + self.KERNELS_DB
        return replace(super().judged(chosen), sqnr_db=fidelity, is_accurate=fidelity >= self.needed_db)


def _searched_with_simulation(model, **options):
    expected = Expectations(lambda chosen, _: model.simulated_db(chosen), [()])
    for chosen, one in model.known.items():
        expected.learn(chosen, (), one.sqnr_db)
    options = {"least": Least.TIME, "limits": Limits(), **options}
    find_mixtures(model.mixture, model.known, model, expected_db=expected.expected_db, **options)
    return model


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("needed_db", [20.0, 30.0])
def test_a_simulation_finds_at_once_what_the_sum_of_the_noises_takes_more_builds_for(needed_db, seed):
    known, simulated = (Entangled(_mixture(seed=seed), needed_db=needed_db) for _ in range(2))
    _search(known, min_db=needed_db)
    _searched_with_simulation(simulated, min_db=needed_db)
    assert simulated.judged(simulated.built[0].chosen).is_accurate
    assert len(simulated.built) <= len(known.built)
    assert simulated.best() <= known.best() * 1.01


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("needed_db", [20.0, 30.0])
def test_where_a_metric_decides_a_simulation_says_which_mixtures_lie_between_two_that_were_built(needed_db, seed):
    """The measured fidelities of the builds are as far apart as asked for, although their noises do not add up."""
    known, simulated = (Entangled(_mixture(seed=seed), needed_db=needed_db) for _ in range(2))
    _search(known)
    _searched_with_simulation(simulated)
    first, second = (simulated.judged(one.chosen).sqnr_db for one in simulated.built[:2])
    low = simulated.judged(simulated.mixture.uniform(LOW)).sqnr_db
    assert first - low == pytest.approx(10.0, abs=1.5)
    assert second - first == pytest.approx(20.0 if first < needed_db else -5.0, abs=1.5)
    assert simulated.best() <= known.best() * 1.05
    assert len(simulated.built) <= MOST_EVALUATIONS


def test_without_a_simulation_the_sum_of_the_noises_decides():
    one, other = (Model(_mixture(), needed_db=30.0, extra_db=-4.0) for _ in range(2))
    options = {"least": Least.TIME, "limits": Limits(), "min_db": 30.0}
    find_mixtures(one.mixture, one.known, one, **options)
    find_mixtures(other.mixture, other.known, other, expected_db=lambda _: None, **options)
    assert [built.chosen for built in one.built] == [built.chosen for built in other.built]


@pytest.mark.parametrize(("share", "builds"), [(0.9, False), (1.2, True)])
def test_only_what_promises_less_than_a_build_elsewhere_is_built(share, builds):
    mixture = _mixture()
    optimum = mixture.solve(Least.TIME, Limits(noise=1e-3))
    model = _search(Model(mixture, needed_db=30.0), min_db=30.0, rival=share * optimum.time)
    assert bool(model.built) is builds


@pytest.mark.parametrize("needed_db", [15.0, 30.0, 50.0])
def test_a_metric_whose_relation_to_fidelity_is_unknown_takes_some_more(needed_db):
    mixture = _mixture()
    model = _search(Model(mixture, needed_db=needed_db))
    optimum = mixture.solve(Least.TIME, Limits(noise=10 ** (-needed_db / 10)))
    assert model.best() <= optimum.time * 1.2
    assert len(model.built) <= MOST_EVALUATIONS


def test_nothing_is_built_where_all_low_meets_the_goal_and_is_the_fastest_everywhere():
    assert _search(Model(_mixture(), needed_db=-10.0)).built == []


def test_regions_that_low_precision_slows_down_are_found_although_all_low_meets_the_goal():
    slow = DecisionGroup(("slow",), (Choice(LOW, 1e-9, 0.3, 1.0), Choice(HIGH, 0.0, 0.1, 4.0)))
    model = _search(Model(Mixture((slow, *_mixture(8).groups)), needed_db=-10.0))
    assert [model.mixture.assigned(one.chosen)["slow"] for one in model.built] == [HIGH]
    assert model.best() == pytest.approx(0.1 + 8 * 0.004)


def test_conversions_that_cost_more_than_thought_are_learned_from_the_first_build():
    mixture = _mixture(border=0.001)
    model = _search(Model(mixture, needed_db=25.0, border_factor=12.0), min_db=25.0)
    assert len(model.built) <= 4
    last = model.built[-1]
    assert model.judged(last.chosen).time == pytest.approx(last.time, rel=0.02)


def test_the_most_accurate_within_a_time_uses_it_up():
    mixture = _mixture()
    model = _search(Model(mixture, most_time=0.5), least=Least.NOISE, limits=Limits(time=0.5))
    affordable = [model.judged(one.chosen) for one in model.built if model.judged(one.chosen).is_affordable]
    best = max(affordable, key=lambda one: one.sqnr_db)
    assert best.time > 0.47
    assert best.sqnr_db > model.judged(mixture.uniform(LOW)).sqnr_db + 10.0


def test_a_size_is_the_least_where_size_is_wanted():
    model = _search(Model(_mixture(), needed_db=30.0), least=Least.BYTES, min_db=30.0)
    optimum = model.mixture.solve(Least.BYTES, Limits(noise=1e-3))
    assert model.best(Least.BYTES) <= optimum.bytes * 1.04


def test_a_failed_build_ends_the_search_of_the_target():
    built = []

    def fail(solution):
        built.append(solution)
        return Evaluation(is_accurate=False, ends=True)

    model = Model(_mixture(), needed_db=30.0)
    find_mixtures(model.mixture, model.known, fail, least=Least.TIME, limits=Limits(), min_db=30.0)
    assert len(built) == 1


def test_where_not_even_all_high_is_enough_nothing_is_promised():
    model = Model(_mixture(), needed_db=300.0)
    assert len(_search(model, min_db=300.0).built) <= 1


@pytest.mark.parametrize("is_quick", [True, False])
def test_what_does_not_pay_is_left_out_once_where_a_build_is_quick(is_quick):
    idle = tuple(DecisionGroup((f"idle{i}",), (Choice(LOW, 1e-6, 0.0999), Choice(HIGH, 0.0, 0.1))) for i in range(3))
    model = Model(Mixture((*idle, *_mixture(8).groups)), needed_db=-10.0)
    find_mixtures(model.mixture, model.known, model, least=Least.TIME, limits=Limits(), is_quick=is_quick)
    kept = [{op for op, one in model.mixture.assigned(built.chosen).items() if one is HIGH} for built in model.built]
    assert kept == ([{"idle0", "idle1", "idle2"}] if is_quick else [])


@pytest.mark.parametrize("least", [Least.TIME, Least.BYTES])
def test_the_front_goes_from_the_least_to_nearly_exact_and_no_point_beats_another(least):
    mixture = _mixture()
    points = front_of(mixture, least)
    assert len(points) == FRONT_POINTS
    assert points[0].chosen == mixture.uniform(LOW)
    figures = [(one.figure(least), one.noise) for one in points]
    assert figures == sorted(figures)
    assert [noise for _, noise in figures] == sorted((noise for _, noise in figures), reverse=True)
    assert decibels(1.0, points[-1].noise) > decibels(1.0, points[0].noise) + 40.0


def test_a_front_of_what_is_fastest_exact_is_one_point():
    slow = DecisionGroup(("slow",), (Choice(LOW, 1e-9, 0.3), Choice(HIGH, 0.0, 0.1)))
    assert [one.chosen for one in front_of(Mixture((slow,)), Least.TIME)] == [(1,)]


def test_what_was_built_and_learned_is_told():
    model = Model(_mixture(), needed_db=30.0, extra_db=-4.0)
    lesson = find_mixtures(model.mixture, model.known, model, least=Least.TIME, limits=Limits(), min_db=30.0)
    assert lesson.offset_db == pytest.approx(-4.0)
    assert {one.chosen for one in model.built} < lesson.built
