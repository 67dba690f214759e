"""The pages have the kept figures in words, hide nothing that is lost, and draw what they say."""

import re
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace
from PySide6.QtGui import QImage

from tests.benchmarks.all import BENCHMARKS
from tests.benchmarks.figures import KEPT, Figure, read
from tests.benchmarks.pages import (
    BEGIN,
    END,
    GROUPS,
    LOST,
    OURS,
    PAGE,
    PEER,
    PLOTS,
    README,
    WIDTH,
    Plot,
    bars_of,
    group_of,
    in_readme,
    made_of,
    page,
    shown,
    svg,
    with_lines,
)  # fmt: skip

NO_CLAIMS = {"3.11"}
"""Numbers in the README that no run finds: a version of Python."""
COUNTED = Figure(
    id="peers.held", what="3 of 4 models", value=3, unit="of 4", peer="fastest tool", lost=True, date="2026-11-22",
    machine="m",
)  # fmt: skip
TIMED = Figure(
    id="start.engine.wall_s", what="the engine needs 1.23 s", value=1.2345, unit="s", low=1.1, high=1.3, peer="torch",
    peer_value=1.0, date="2026-11-23", machine="m",
)  # fmt: skip


def numbers_in(text: str) -> list[str]:
    """The numbers in words, but not those in names (int8, MobileNetV2)."""
    return re.findall(r"(?<![\w.-])\d[\d,]*(?:\.\d+)?", text)


def claimed_numbers(text: str) -> list[str]:
    """The numbers in the prose of the README: none of code, of addresses or of the figures."""
    text = re.sub(f"{BEGIN}.*?{END}|^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return numbers_in(re.sub(r"^(?: {4}|\|).*$|`[^`\n]+`|\]\([^)]*\)", "", text, flags=re.MULTILINE))


def states(number: str, value: float) -> bool:
    """Whether a number is this value, rounded, or as a percentage."""
    digits = len(number.partition(".")[2])
    return float(number.replace(",", "")) in {round(value, digits), round(100 * value, digits)}


def test_the_pages_and_plots_are_those_of_the_kept_figures():
    made = made_of(read(KEPT))
    assert len(made) == 2 + len(PLOTS)
    assert [path.name for path, text in made.items() if path.read_text(encoding="utf-8") != text] == []


def test_the_window_can_draw_the_plots(qapp):
    pictures = [QImage(str(PAGE.with_name(name))) for name in re.findall(r"!\[.*\]\((.*)\)", PAGE.read_text("utf-8"))]
    assert [picture.width() for picture in pictures] == [WIDTH] * len(PLOTS)


def test_every_number_that_the_readme_claims_was_found_by_a_run():
    numbers = set(claimed_numbers(README.read_text(encoding="utf-8"))) - NO_CLAIMS
    assert numbers
    assert [number for number in numbers if not any(states(number, one.value) for one in read(KEPT))] == []


def test_numbers_of_code_addresses_and_the_figures_are_no_claims():
    text = f"A1 has 1,200 ops and 0.5 s.\n\n    run 7\n\n`8` [x](9.md) int8\n{BEGIN}\n10\n{END}\n```python\n11\n```\n"
    assert claimed_numbers(text) == ["1,200", "0.5"]


def test_the_sentence_of_a_figure_states_its_value_and_that_of_its_peer():
    pairs = [(one, value) for one in read(KEPT) for value in (one.value, one.peer_value) if value is not None]
    assert [(one.id, value) for one, value in pairs if not any(states(n, value) for n in numbers_in(one.what))] == []


def test_every_benchmark_has_a_group():
    assert {group_of(f"{name}.claims") for name in BENCHMARKS} == set(GROUPS) == set(PLOTS)
    assert {group_of(one.id) for one in read(KEPT)} == set(GROUPS)
    assert group_of("time.mobilenet_v2.ceiling") == "Speed"


def test_a_group_has_what_is_lost_first_and_marked():
    other = replace(COUNTED, id="kept.held", what="4 of 4 others", lost=False)
    assert [one.id for one in shown([TIMED, other, COUNTED])] == ["peers.held", "kept.held", "start.engine.wall_s"]
    text = page([TIMED, other, COUNTED])
    assert "\n## Speed\n\n- **Lost.** 3 of 4 models.\n- 4 of 4 others.\n" in text
    assert "- The engine needs 1.23 s (95 %: 1.1 to 1.3).\n" in text
    assert "Measured 2026-11-22 to 2026-11-23 on m." in text


def test_what_is_lost_is_shown_even_if_the_page_has_no_place_for_it():
    other = replace(TIMED, id="scale.append.7", what="one more run takes 1.23 s")
    assert "One more" not in page([COUNTED, other])
    assert "**Lost.** One more" in page([COUNTED, replace(other, lost=True)])


@pytest.mark.parametrize("change", [{"busy": True}, {"quick": True}])
def test_what_was_measured_on_a_busy_machine_or_in_part_is_not_shown(change):
    assert "engine needs" not in made_of([COUNTED, replace(TIMED, **change)])[PAGE]
    assert "No run on a quiet machine is kept yet." in made_of([replace(TIMED, **change)])[PAGE]


def test_a_count_is_shown_whatever_else_was_running():
    assert "engine needs" in made_of([replace(TIMED, busy=True, counted=True)])[PAGE]


def test_the_readme_has_six_figures_and_how_many_there_are():
    text = in_readme(read(KEPT))
    assert text.count("\n- ") == 5 and text.startswith("- **Lost.**")
    assert f"[All {len(shown(read(KEPT)))} figures]" in text


def test_only_the_text_between_the_markers_changes():
    text = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    assert with_lines(text, "new\n") == text.replace("old", "new")
    with pytest.raises(ValueError, match="unpack"):
        with_lines("no markers", "new\n")


def test_a_plot_has_a_bar_for_each_figure_and_peer_in_proportion_and_a_line_at_what_is_wanted():
    figures = [TIMED, replace(TIMED, id="start.window.wall_s", value=0.5, low=None, lost=True, peer="<Qt>")]
    plot = Plot("Seconds & more", {"start.*": "{part[1]} beside {peer}"}, "s", line=1.0)
    drawn = ElementTree.fromstring(svg(plot, bars_of(plot, [*figures, COUNTED])))
    bars = [(one.get("fill"), float(one.get("width"))) for one in drawn if one.get("height") == "12"]
    assert [colour for colour, _ in bars] == [LOST, PEER, OURS, PEER]
    assert bars[0][1] / bars[1][1] == pytest.approx(0.5, rel=0.01)
    words = [one.text for one in drawn if one.text and one.text.strip()]
    assert words[:4] == ["Seconds & more", "window beside <Qt>", "0.5 s, lost", "<Qt>"]
    paths = [one.get("d") for one in drawn if one.tag.endswith("path")]
    lines = [path for path in paths if path.endswith("v16")]
    assert (len(paths), len(lines)) == (5, 4)
    at_one, peer_end = float(lines[0][1:].split(" ")[0]), bars[1][1] + 14
    assert at_one == pytest.approx(peer_end, abs=0.2)


def test_the_title_of_a_plot_fits_in_its_line():
    assert max(len(plot.title) for plot in PLOTS.values()) <= 75
