"""The speed-ups in the picture of a comparison."""

from xml.etree import ElementTree

from ace_studio.engine.report import comparison_svg
from tests.gui.run_results import TABLE, result_of, run_of


def test_a_ratio_within_its_noise_is_no_speed_up():
    found = ElementTree.fromstring(comparison_svg(result_of(TABLE, (run_of(TABLE, p50=9.5), run_of(TABLE, p50=2.0)))))
    words = [node.text for node in found.iter("{http://www.w3.org/2000/svg}text")]
    assert words.count("no difference seen") == 1
    assert "5.00x" in words and "1.05x" not in words
