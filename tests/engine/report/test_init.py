"""The report is self-contained, escapes names, and result.json comes back as it was."""

from xml.etree import ElementTree

from msgspec.structs import replace

from ace_studio.cli.app import Console
from ace_studio.cli.show_result import show_improvements, show_result
from ace_studio.engine.report import BAR, OVERSHOOT, comparison_svg, write_report
from ace_studio.records import results
from ace_studio.records.advice import Advice, AdviceOutcome, AdviceQuantity
from ace_studio.records.errors import ErrorCode, Problem, visible
from ace_studio.records.results.finetuning import FinetuneEpoch, FinetuneReport
from ace_studio.records.results.on_devices import with_figures, with_section
from ace_studio.records.results.pruning import PrunedLayer, PruningReport

HOSTILE = "<script>alert(1)</script>\x1b[1m\u202e"
LATENCY = results.Latency(p10=1.0, p50=2.0, p90=3.0, n=5)
OP = results.OpReport(
    id="conv", op="aten.conv2d.default", module=HOSTILE, shape="1", device="cpu", planned="fp32", actual="fp32"
)
RESULT = results.Result(
    status=results.ResultStatus.OK,
    fingerprint="f",
    environment={"threads": 1, "device_name": HOSTILE},
    baseline=results.Baseline(latency_ms=LATENCY, metric=0.9, size_bytes=1000),
    runs=(
        results.TargetRun(target="openvino", status=results.RunStatus.OK, precision="int8-static", latency_ms=LATENCY,
                  speedup=2.0, speedup_low=1.9, speedup_high=2.1, float_speedup=1.25, float_speedup_low=1.2,
                  float_speedup_high=1.3, metric=0.9, size_bytes=300, verified=True, ops=(OP,)),
        results.TargetRun(target="tensorrt", status=results.RunStatus.UNAVAILABLE, precision="int8-static",
                  error=Problem(code=ErrorCode.NOT_INSTALLED, what=HOSTILE)),
    ),
    chosen=0,
)  # fmt: skip


def test_result_json_comes_back_as_it_was(tmp_path):
    write_report(RESULT, None, tmp_path)
    assert results.decode_result((tmp_path / "result.json").read_bytes()) == RESULT


def test_the_report_and_the_picture_have_the_gain_over_fp32_in_the_same_runtime(tmp_path):
    write_report(RESULT, None, tmp_path)
    assert "1.25x (1.20 - 1.30)" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert ">1.25x<" in (tmp_path / "comparison.svg").read_text(encoding="utf-8")
    plain = replace(RESULT, runs=(replace(RESULT.runs[0], float_speedup=None, ops=()),))
    write_report(plain, None, tmp_path)
    assert "not measured" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_the_report_of_a_disturbed_measurement_calls_nothing_faster(tmp_path):
    write_report(replace(RESULT, runs=(replace(RESULT.runs[0], speed_undecided="slow"),)), None, tmp_path)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "not decided (1.90 - 2.10)" in text
    assert "2.00x" not in text


def test_the_report_says_where_the_time_went(tmp_path):
    write_report(replace(RESULT, seconds=41.0, phase_seconds={"lower": 30.0}), None, tmp_path)
    assert "The run took 41 s: building 30 s." in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_no_name_becomes_markup_and_nothing_is_loaded_from_outside(tmp_path):
    write_report(RESULT, None, tmp_path)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\u001b[1m\\u202e" in text
    assert not {"\x1b", "\u202e"} & set(text + (tmp_path / "comparison.svg").read_text(encoding="utf-8"))
    assert "src=" not in text
    assert "href=" not in text


def test_the_report_and_the_command_line_say_what_improvements_gave(tmp_path, capsys):
    kept = results.Improvement(
        method="equalize", precision="int8-static", before_db=20.0, after_db=23.5, kept=True, reason="closer <b>"
    )
    left = results.Improvement(
        method="gptq", precision="int8-static", reason="no linear layer is planned at int4-weight"
    )
    found = replace(RESULT, improvements=(kept, left))
    write_report(found, None, tmp_path)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    for words in ("equalize", "23.5", "kept", "closer &lt;b&gt;", "no linear layer"):
        assert words in text
    show_improvements(found, Console(as_json=False))
    shown = capsys.readouterr().out
    assert "equalize at int8-static: 20.0 to 23.5 dB, kept: closer <b>" in shown
    assert "gptq at int8-static: left: no linear layer" in shown


def test_a_run_that_stayed_at_fp32_is_called_so_in_the_report_and_on_the_command_line(tmp_path, capsys):
    write_report(RESULT, None, tmp_path)  # its only op is at fp32
    show_result(replace(RESULT, goal_met=True), Console(as_json=False), tmp_path)
    said, built = " ".join(capsys.readouterr().out.split()), "fp32 (0 of 1 ops int8-static)"
    assert f"Chosen: openvino {built}, which meets the goal" in said
    assert f"<td>openvino</td><td>{built}</td>" in (tmp_path / "report.html").read_text(encoding="utf-8")
    picture = (tmp_path / "comparison.svg").read_text(encoding="utf-8")
    assert ">openvino fp32 \u2713<" in picture and ">0 of 1 ops int8-static<" in picture


def test_the_times_of_the_ops_have_the_digits_of_the_latency(tmp_path):
    profile = results.OpsProfile(
        ops_ms=2.0, latency_ms=2.5, uncovered_ms=0.5, timed_ops=1, source="s", measured_input="4x8"
    )
    write_report(replace(RESULT, runs=(replace(RESULT.runs[0], profile=profile),)), None, tmp_path)
    text = " ".join((tmp_path / "report.html").read_text(encoding="utf-8").split())
    assert "1 ops take 2.000 ms of 2.500 ms; 0.5000 ms belong to no op (s; input 4x8)" in text


def test_no_half_written_file_is_left(tmp_path):
    write_report(RESULT, None, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["comparison.svg", "report.html", "result.json"]


def test_a_difference_inside_the_interval_is_called_none(tmp_path):
    run = replace(RESULT.runs[0], metric_low=0.88, metric_high=0.92, metric_drop=0.01, drop_low=-0.01, drop_high=0.03)
    write_report(replace(RESULT, runs=(run,)), None, tmp_path)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "0.9000 (0.8800 - 0.9200)" in text
    assert "no difference seen (-1.00% to +3.00%)" in text
    write_report(replace(RESULT, runs=(replace(run, drop_low=0.002),)), None, tmp_path)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "+1.00% (+0.20% to +3.00%)" in text
    write_report(replace(RESULT, runs=(replace(run, speedup_low=0.9),)), None, tmp_path)
    assert "no difference seen (0.90 - 2.10)" in (tmp_path / "report.html").read_text(encoding="utf-8")


LAYER = PrunedLayer(
    module=HOSTILE, type="Linear", shape_before="32x16", shape_after="16x16", weights_before=512, weights_after=256,
    macs_before=512, macs_after=256, bytes_before=2048, bytes_after=1024, sqnr_db=9.5,
)  # fmt: skip
CHANGED = results.Result(
    status=results.ResultStatus.OK,
    fingerprint="f",
    environment={},
    pruning=PruningReport(method="structured", amount=0.5, layers=(LAYER,), sqnr_db=8.25, speed="It is faster."),
    finetune=FinetuneReport(
        method="distill", score_name="held-out SQNR", higher_is_better=True, before=8.2, after=21.5, kept=True,
        reason="it went up", history=(FinetuneEpoch(epoch=1, loss=0.125, score=21.5, seconds=1.0),), examples=6,
    ),
    advice=(
        Advice(
            kind="precision-bf16", title="Try bf16", why=HOSTILE, estimate="about 2 times",
            change={"plan": {"default": "bf16"}}, quantity=AdviceQuantity.LATENCY, do_first="Sleep on it.",
        ),
    ),
    advice_from=AdviceOutcome(
        kind="x", title="Use all cores", quantity=AdviceQuantity.LATENCY, verdict="80% of the estimate"
    ),
)  # fmt: skip


def test_pruning_training_and_advice_are_in_the_report(tmp_path):
    write_report(CHANGED, None, tmp_path)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    for words in ("16x16", "256 of 512", "8.2", "It is faster.", "21.5000", "0.12500", "it went up"):
        assert words in text
    for words in (
        "Try bf16",
        "about 2 times",
        "Sleep on it.",
        "[plan] default = &#34;bf16&#34;",
        "Use all cores",
        "80% of the estimate",
    ):
        assert words in text
    assert "<script" not in text and "&lt;script&gt;" in text


def test_what_was_done_comes_back_from_result_json(tmp_path):
    write_report(CHANGED, None, tmp_path)
    assert results.decode_result((tmp_path / "result.json").read_bytes()) == CHANGED


SVG = "{http://www.w3.org/2000/svg}"


def test_the_picture_is_well_formed_and_its_bars_are_to_scale():
    root = ElementTree.fromstring(comparison_svg(RESULT))
    bars = [node for node in root.iter("{http://www.w3.org/2000/svg}rect") if node.get("rx")]
    assert len(bars) == 2
    assert bars[0].get("width") == bars[1].get("width")
    words = "".join(root.itertext())
    assert "openvino fp32 ✓" in words


def test_a_spread_that_is_far_longer_than_all_medians_ends_in_an_arrow_inside_the_picture():
    calm = replace(RESULT.baseline, latency_ms=results.Latency(p10=1.9, p50=2.0, p90=2.1, n=5))
    busy = replace(RESULT.runs[0], latency_ms=results.Latency(p10=1.0, p50=2.0, p90=200.0, n=5))
    picture = ElementTree.fromstring(comparison_svg(replace(RESULT, baseline=calm, runs=(busy,))))
    paths = [node.get("d") for node in picture.iter(f"{SVG}path")]
    assert paths[0].endswith("m0,-4 v8")
    assert paths[1].endswith("l-5,-4 m5,4 l-5,4")
    assert float(paths[1].split("H")[1].split()[0]) == 210 + BAR + OVERSHOOT


def test_a_run_without_a_latency_says_why_and_its_words_are_escaped_and_cut():
    lost = replace(RESULT.runs[1], error=None, warnings=(results.Warning(code="dropped", what=HOSTILE + "x" * 200),))
    text = comparison_svg(replace(RESULT, runs=(lost,)))
    assert "<script" not in text
    texts = [node.text or "" for node in ElementTree.fromstring(text).iter(f"{SVG}text")]
    words = next(one for one in texts if visible(HOSTILE) in one and one.endswith("…"))
    assert len(words) == 100


def test_a_result_without_a_baseline_still_gives_a_picture():
    assert "eager fp32 (baseline)" in comparison_svg(replace(RESULT, baseline=None, runs=()))


def test_the_report_has_a_column_for_each_device_and_nothing_of_it_becomes_markup(tmp_path):
    found = results.DeviceFigure(
        device="box", machine=HOSTILE, session="s", date="d", latency_ms=LATENCY, low=1.5, high=2.5, threads=1,
        runtime="openvino 1", governor="powersave", temperature_c=61.0,
    )  # fmt: skip
    write_report(with_figures(RESULT, {0: found}), None, tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<th>box: p50 ms</th>" in page and "2.000 (1.500 - 2.500)" in page and "governor powersave, 61 °C" in page
    assert HOSTILE not in page and "<script" not in page and "\x1b" not in page
    write_report(RESULT, None, tmp_path)
    bare = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert with_section(page, RESULT) == bare  # a later measurement replaces the section, wherever it stands
