import os
from collections import deque

import pytest

from ace_studio.jobs.log_pump import BURST_LINES, LINE_LIMIT, LINES_PER_S, LineBudget, LogPump


def pumped(*chunks: bytes) -> tuple[list[str], deque[str]]:
    """The lines that went on, and the last ones, after these bytes and the end."""
    reading, writing = os.pipe()
    lines: list[str] = []
    tail = deque[str](maxlen=200)
    pump = LogPump(reading, emit=lines.append, tail=tail)
    pump.start()
    for chunk in chunks:
        os.write(writing, chunk)
    os.close(writing)
    pump.join(10)
    os.close(reading)
    return lines, tail


def test_lines_go_on_one_by_one_the_last_without_an_end_too() -> None:
    assert pumped(b"one\ntw", b"o\n\nthree")[0] == ["one", "two", "", "three"]


def test_of_a_progress_bar_the_last_state_is_kept() -> None:
    assert pumped(b" 10%\r 50%\r100%\nwindows\r\n")[0] == ["100%", "windows"]


def test_bytes_that_are_no_text_do_not_stop_anything() -> None:
    assert pumped(b"\xff\xfe ok\n")[0] == ["\ufffd\ufffd ok"]


def test_a_long_line_is_cut() -> None:
    (line,) = pumped(b"x" * 5000 + b"\n")[0]
    assert len(line) == LINE_LIMIT + 4 and line.endswith(" ...")


def test_of_a_flood_the_first_lines_and_the_last_ones_are_known() -> None:
    flood = b"".join(b"%d\n" % number for number in range(60_000))
    lines, tail = pumped(*(flood[at : at + 50_000] for at in range(0, len(flood), 50_000)))
    assert lines[:3] == ["0", "1", "2"]
    assert len(lines) < 5000
    shown = [line for line in lines if "left out" not in line]
    left_out = sum(int(line.split()[1]) for line in lines if "left out" in line)
    assert abs(len(shown) + left_out - 60_000) < 50
    assert tail[-1] == "59999" and len(tail) == tail.maxlen


def test_a_line_without_an_end_does_not_fill_the_memory() -> None:
    _, tail = pumped(*[b"x" * 60_000 for _ in range(40)])
    assert sum(map(len, tail)) < 100_000


@pytest.mark.parametrize("pause_s", [0.0, 0.5, 100.0])
def test_the_budget_fills_up_again_with_time(pause_s: float) -> None:
    now_s = [0.0]
    budget = LineBudget(clock=lambda: now_s[0])
    assert budget.take(10 * BURST_LINES) == BURST_LINES
    now_s[0] += pause_s
    assert budget.take(10 * BURST_LINES) == min(BURST_LINES, int(pause_s * LINES_PER_S))
