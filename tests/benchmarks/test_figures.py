"""The figures in the README are those of the kept file, and the table hides nothing that is lost."""

import re

import pytest
from msgspec.structs import replace

from ace_studio.records.results import Baseline, Ceilings, OpReport, Result, ResultStatus, RunStatus, TargetRun
from tests.benchmarks.figures import BEGIN, END, KEPT, README, Figure, ceilings_of, page, read, with_page

NO_CLAIMS = {"3.11", "3.12", "3.13"}
"""Numbers in the README that no run finds: versions of Python."""
FIRM = Figure(
    id="peers.held", what="models", value=3, unit="of 4", peer="fastest tool", lost=True, date="2026-11-22", machine="m"
)
TIMED = Figure(
    id="start.engine.wall_s", what="engine", value=1.2345, unit="s", low=1.1, high=1.3, peer="torch", peer_value=1.0,
    date="2026-11-23", machine="m",
)  # fmt: skip


def claimed_numbers(text: str) -> list[str]:
    """The numbers in the prose: none of code, of addresses or of tables (`test_trial` compares that of installers)."""
    text = re.sub(f"{BEGIN}.*?{END}|^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^(?: {4}|\|).*$|`[^`\n]+`|\]\([^)]*\)", "", text, flags=re.MULTILINE)
    return re.findall(r"(?<![\w.-])\d[\d,]*(?:\.\d+)?", text)


def test_the_table_of_the_readme_is_that_of_the_kept_figures():
    text = README.read_text(encoding="utf-8")
    assert with_page(text, page(read(KEPT))) == text


def test_every_number_that_the_readme_claims_was_found_by_a_run():
    values = [one.value for one in read(KEPT)]
    numbers = set(claimed_numbers(README.read_text(encoding="utf-8"))) - NO_CLAIMS
    assert numbers
    for number in numbers:
        digits = len(number.partition(".")[2])
        assert any(round(value, digits) == float(number.replace(",", "")) for value in values), number


def test_numbers_of_code_addresses_and_the_table_are_no_claims():
    text = f"A1 has 1,200 ops and 0.5 s.\n\n    run 7\n\n`8` [x](9.md) int8\n{BEGIN}\n10\n{END}\n```python\n11\n```\n"
    assert claimed_numbers(text) == ["1,200", "0.5"]


def test_the_table_has_the_interval_the_peer_and_what_is_lost():
    table = page([TIMED, FIRM])
    assert table.startswith("Measured 2026-11-22 to 2026-11-23 on m.")
    assert table.splitlines()[-2:] == [
        "| models | 3 of 4 |  | fastest tool | **lost** |",
        "| engine | 1.23 s | 1.1 – 1.3 | torch: 1 |  |",
    ]


def test_what_is_lost_is_shown_even_if_the_table_has_no_place_for_it():
    other = replace(TIMED, id="scale.append.7")
    assert "scale" not in page([FIRM, replace(other, what="scale")])
    assert "scale" in page([FIRM, replace(other, what="scale", lost=True)])


@pytest.mark.parametrize("change", [{"busy": True}, {"quick": True}])
def test_what_was_measured_on_a_busy_machine_or_in_part_is_not_shown(change):
    assert "engine" not in page([FIRM, replace(TIMED, **change)])
    assert page([replace(TIMED, **change)]).startswith("No run")


def test_a_count_is_shown_whatever_else_was_running():
    assert "engine" in page([replace(TIMED, busy=True, counted=True)])


def test_only_the_text_between_the_markers_changes():
    text = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    assert with_page(text, "new\n") == text.replace("old", "new")
    with pytest.raises(ValueError, match="unpack"):
        with_page("no markers", "new\n")


def test_the_share_of_the_ceilings_weighs_each_op_by_its_time():
    def op(latency_ms, share):
        plain = dict.fromkeys(("id", "op", "module", "shape", "device", "planned", "actual"), "")
        return OpReport(**plain, latency_ms=latency_ms, ceiling_share=share)

    run = TargetRun(target="openvino", precision="bf16", status=RunStatus.OK, ops=(op(3.0, 0.5), op(1.0, None)))
    ceilings = Ceilings(
        gflops={"fp32": 50.0}, gbytes_per_s=9.0, gbytes_per_s_at={}, spread=0.0, threads=1, machine="m"
    )  # fmt: skip
    result = Result(
        status=ResultStatus.OK, fingerprint="", environment={}, runs=(run,), chosen=0, ceilings=ceilings,
        baseline=Baseline(ops=(op(1.0, 0.75), op(None, 0.1))),
    )  # fmt: skip
    (found,) = ceilings_of("time.vit", result)
    assert (found.id, found.value, found.peer_value) == ("time.vit.ceiling", 0.375, 0.75)
    assert ceilings_of("time.vit", replace(result, chosen=None)) == []
    assert ceilings_of("time.vit", replace(result, runs=(replace(run, ops=()),))) == []
