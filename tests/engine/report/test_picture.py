"""The picture of the comparison: well-formed, to scale, and readable on a busy machine."""

from xml.etree import ElementTree

from msgspec.structs import replace

from ace_studio.engine.report.picture import BAR, OVERSHOOT, comparison_svg
from ace_studio.records.results import Latency, Warning
from tests.engine.report.test_init import HOSTILE, RESULT

SVG = "{http://www.w3.org/2000/svg}"


def test_the_picture_is_well_formed_and_its_bars_are_to_scale():
    root = ElementTree.fromstring(comparison_svg(RESULT))
    bars = [node for node in root.iter("{http://www.w3.org/2000/svg}rect") if node.get("rx")]
    assert len(bars) == 2
    assert bars[0].get("width") == bars[1].get("width")
    words = "".join(root.itertext())
    assert "openvino int8-static ✓" in words


def test_a_spread_that_is_far_longer_than_all_medians_ends_in_an_arrow_inside_the_picture():
    calm = replace(RESULT.baseline, latency_ms=Latency(p10=1.9, p50=2.0, p90=2.1, n=5))
    busy = replace(RESULT.runs[0], latency_ms=Latency(p10=1.0, p50=2.0, p90=200.0, n=5))
    picture = ElementTree.fromstring(comparison_svg(replace(RESULT, baseline=calm, runs=(busy,))))
    paths = [node.get("d") for node in picture.iter(f"{SVG}path")]
    assert paths[0].endswith("m0,-4 v8")
    assert paths[1].endswith("l-5,-4 m5,4 l-5,4")
    assert float(paths[1].split("H")[1].split()[0]) == 210 + BAR + OVERSHOOT


def test_a_run_without_a_latency_says_why_and_its_words_are_escaped_and_cut():
    lost = replace(RESULT.runs[1], error=None, warnings=(Warning(code="dropped", what=HOSTILE + "x" * 200),))
    text = comparison_svg(replace(RESULT, runs=(lost,)))
    assert "<script" not in text
    texts = [node.text or "" for node in ElementTree.fromstring(text).iter(f"{SVG}text")]
    words = next(one for one in texts if HOSTILE in one and one.endswith("…"))
    assert len(words) == 100


def test_a_result_without_a_baseline_still_gives_a_picture():
    assert "eager fp32 (baseline)" in comparison_svg(replace(RESULT, baseline=None, runs=()))
