import re

from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.sweeps import RowStatus, SweepReport, SweepRow, SweepStatus, with_front
from ace_studio.sweeps.tables import report_html

FIGURES = {"status": RowStatus.DONE, "host": "box", "target": "eager", "precision": "fp32", "size_bytes": 1000}


def made(*rows):
    return SweepReport(status=SweepStatus.OK, rows=rows)


def shaped(job, batch, size, ms):
    axes = {"shape": f"x={batch}x3x{size}x{size}"}
    return SweepRow(job=job, recipe="a.toml", axes=axes, latency_ms=ms, metric=0.9, folder=f"jobs/{job}", **FIGURES)


def test_the_report_is_one_file_without_links_to_the_outside_and_escapes_names():
    row = SweepRow(job="1", recipe="<b>.toml", axes={"plan": "<script>"}, latency_ms=1.0, metric=0.9, **FIGURES)
    other = SweepRow(job="2", recipe="a.toml", axes={"plan": "x"}, latency_ms=2.0, metric=0.8, **FIGURES)
    text = report_html(made(row, other))
    assert "<script" not in text
    assert "<b>.toml" not in text
    assert re.findall(r"(?:src|href)=\"(?!jobs/)", text) == []
    assert text.count("<circle") == 2


def test_the_gain_over_fp32_in_the_same_runtime_is_beside_the_speed_up():
    gains = {"speedup": 3.0, "float_speedup": 1.5, "float_speedup_low": 1.4, "float_speedup_high": 1.6}
    text = report_html(made(SweepRow(job="1", recipe="a.toml", axes={}, latency_ms=1.0, **gains, **FIGURES)))
    assert "<th>vs fp32</th>" in text
    assert "1.50x (1.40 - 1.60)" in text


def test_each_of_several_recipes_has_a_picture_with_a_front_of_its_own():
    rows = [
        SweepRow(job=job, recipe=recipe, axes={"goal": '{"max_drop":0.02}'}, latency_ms=ms, metric=metric, **FIGURES)
        for job, recipe, ms, metric in (
            ("1", "a", 1.0, 0.9),
            ("2", "a", 2.0, 0.8),
            ("3", "b", 3.0, 0.7),
            ("4", "b", 2.5, 0.6),
        )
    ]
    text = report_html(made(*with_front(rows)))
    assert re.findall(r"<h2>(.*?)</h2>", text)[:3] == [
        "Latency and accuracy", "Latency and accuracy · a alone", "Latency and accuracy · b alone"
    ]  # fmt: skip
    whole, one, other = (re.findall(r'<circle[^>]*fill="#0b7285"', part) for part in text.split("<svg")[1:])
    assert (len(whole), len(one), len(other)) == (1, 1, 2)
    assert "<td>max_drop 0.02</td>" in text


def test_a_job_without_a_result_says_why():
    problem = Problem(code=ErrorCode.NOT_CAPTURED, what="No graph", why="it branches")
    text = report_html(made(SweepRow(job="1", recipe="a.toml", axes={}, status=RowStatus.FAILED, error=problem)))
    assert "No graph" in text
    assert "it branches" in text


def test_the_heat_map_shows_the_fastest_job_of_each_batch_and_shape():
    rows = [shaped("1", 1, 8, 1.0), shaped("2", 1, 8, 0.5), shaped("3", 4, 8, 3.0), shaped("4", 4, 16, 9.0)]
    text = report_html(made(*rows))
    (table,) = re.findall(r"<table style.*?</table>", text, flags=re.DOTALL)
    assert re.findall(r"title=\"job (\d)\">([\d.]+)<", table) == [("2", "0.5"), ("3", "3"), ("4", "9")]
    assert table.count("<td></td>") == 1
