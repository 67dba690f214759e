"""The claims of the benchmark of slow traces can fail."""

from tests.benchmarks.bench_slow_traces import Row, Trace, failed_claims, table

LIMIT_S = 300.0


def traces(*cpu_s: float, unequal: tuple[str, ...] = ()) -> list[Trace]:
    return [Trace(seconds=2 * one, cpu_s=one, equal=4, unequal=list(unequal)) for one in cpu_s]


def test_a_model_that_must_be_faster_is_told_if_it_is_not() -> None:
    assert not failed_claims([Row(name="mobilevitv2_050", ours=traces(2, 3, 4), plain=traces(60))], LIMIT_S)
    slow = failed_claims([Row(name="mobilevitv2_050", ours=traces(2, 3, 4), plain=traces(9))], LIMIT_S)
    assert slow == ["mobilevitv2_050 is only 3.0 times faster"]


def test_other_models_need_not_be_faster_but_must_be_right() -> None:
    assert not failed_claims([Row(name="resnet50", ours=traces(2), plain=traces(2))], LIMIT_S)
    assert failed_claims(
        [Row(name="resnet50", ours=traces(2, unequal=("(1, 9, 9): differs",)), plain=traces(2))], LIMIT_S
    )


def test_a_plain_trace_that_was_stopped_counts_with_the_limit_in_seconds_of_the_clock() -> None:
    stopped = Row(name="tf_efficientnet_b0", ours=traces(2), plain=[], plain_ended="stopped after 300 s")
    assert stopped.ratio(LIMIT_S) == 75.0
    assert ">= 75.0" in table([stopped], LIMIT_S)
    assert not failed_claims([stopped], LIMIT_S)
    assert failed_claims([stopped], limit_s=12.0)
