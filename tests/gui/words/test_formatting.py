"""Numbers as people read them."""

import pytest
from msgspec.structs import replace

from ace_studio.gui.words.formatting import (
    NOTHING,
    SIZES,
    Unit,
    bytes_text,
    count_text,
    decibel_text,
    float_speedup_text,
    ms_text,
    percent_text,
    plural,
    run_text,
    seconds_text,
    sentence,
    shape_text,
    speedup_text,
)
from ace_studio.records.results import RunStatus, TargetRun
from ace_studio.session.kept.history import RunSummary


def run(speedup, low, high):
    return TargetRun(target="t", status=RunStatus.OK, speedup=speedup, speedup_low=low, speedup_high=high)


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.00 kB"), (123_456, "123 kB"), (25_600_000, "25.6 MB"), (2e9, "2.00 GB")],
)
def test_bytes_have_three_digits_in_powers_of_a_thousand(count, text):
    assert bytes_text(count) == text


def test_rounding_never_shows_a_thousand_of_a_unit():
    assert bytes_text(999_999) == "1.00 MB"


def test_what_was_not_measured_is_a_dash_and_never_a_zero():
    assert [bytes_text(None), ms_text(None), percent_text(None), decibel_text(None)] == [NOTHING] * 4


@pytest.mark.parametrize(
    ("ms", "text"),
    [(0.0453, "45.30 µs"), (0.3, "0.3000 ms"), (21.18, "21.18 ms"), (300.0, "300.0 ms"), (25_000, "25.00 s")],
)
def test_latencies_take_the_unit_that_reads_best(ms, text):
    assert ms_text(ms) == text


def test_all_times_of_a_column_share_the_unit_that_most_of_them_read_best_in():
    unit = Unit.of([0.047, None, 3.5, 12.345])
    assert (unit.name, [unit.text(time) for time in (0.047, None, 12.345)]) == ("ms", ["0.04700", NOTHING, "12.35"])
    assert Unit.of([0.01, 0.02, 0.3]).text(0.3) == "300.0"
    assert Unit.of([120.0, 240.0]).text(240.0) == "240.0"
    assert Unit.of([]).name == "ms"


def test_all_sizes_of_an_axis_share_a_unit():
    unit = Unit.of([1_430_000, 442_000, 378_000], SIZES)
    assert (unit.name, unit.text(1_430_000), unit.text(378_000)) == ("MB", "1.43", "0.378")
    assert Unit.of([59_000], SIZES).name == "kB"
    assert Unit.of([12e6, 900e3, 40e6], SIZES).text(900e3) == "0.900"


def test_a_speed_up_whose_interval_holds_one_is_not_called_a_difference():
    assert speedup_text(run(1.02, 0.97, 1.08)).text == "no difference seen"
    assert not speedup_text(run(1.02, 0.97, 1.08)).is_clear


def test_a_clear_speed_up_is_shown_with_its_interval():
    shown = speedup_text(run(5.5, 5.1, 5.9))
    assert (shown.text, shown.interval, shown.is_clear) == ("5.50×", "5.10 – 5.90", True)


def test_the_gain_over_fp32_is_not_measured_or_has_no_meaning_or_is_shown_like_a_speed_up():
    own = replace(run(5.5, 5.1, 5.9), precision="int8-static")
    assert float_speedup_text(own).text == "not measured"
    assert float_speedup_text(replace(own, precision="fp32")).text == NOTHING
    assert float_speedup_text(replace(own, speedup=None)).text == NOTHING  # not timed at all
    beside = replace(own, float_speedup=1.3, float_speedup_low=1.2, float_speedup_high=1.4)
    assert (float_speedup_text(beside).text, float_speedup_text(beside).interval) == ("1.30×", "1.20 – 1.40")
    assert float_speedup_text(replace(beside, float_speedup_low=0.9)).text == "no difference seen"


def test_a_speed_up_of_a_disturbed_measurement_is_not_decided_and_says_why():
    shown = speedup_text(replace(run(5.5, 5.1, 5.9), speed_undecided="the processor slowed down"))
    assert (shown.text, shown.is_clear) == ("not decided", False)
    assert shown.interval == "the processor slowed down: 5.50×  5.10 – 5.90"


def test_a_drop_is_a_percentage_and_noise_is_zero():
    assert percent_text(0.0123) == "1.23 %"
    assert percent_text(-1e-7) == "0 %"


def test_the_rest_reads_well():
    assert seconds_text(3.21) == "3.2 s"
    assert seconds_text(65) == "1:05"
    assert seconds_text(3723) == "1:02:03"
    assert count_text(4.12e9) == "4.12 G"
    assert decibel_text(200.0) == "exact"
    assert shape_text("s0x3x8") == "s0 × 3 × 8"
    assert shape_text("Max(4,s0)x2x(s1+1)") == "Max(4,s0) × 2 × (s1+1)"
    assert shape_text(()) == "scalar"
    assert plural(1, "op") == "1 op"
    assert plural(12345, "op") == "12,345 ops"


def test_a_run_of_the_history_is_told_in_the_words_of_the_window():
    past = RunSummary(
        id=1, date="2026-11-28T13:44:00", fingerprint="", title="net.py", status="goal-not-met", target="onnxruntime",
        precision="int8-static", latency_ms=0.19, speedup=4.75, float_speedup=1.37, metric=0.99, metric_drop=0.0,
        size_bytes=1, output="",
    )  # fmt: skip
    words = "goal not met, onnxruntime int8-static, 0.1900 ms, 4.75×, 1.37× against fp32 there, drop 0 %"
    assert run_text(past) == words


def test_sentences_keep_names_of_code():
    assert sentence("the code stops") == "The code stops."
    assert sentence("torch.cond cannot") == "torch.cond cannot."
    assert sentence("") == ""
