"""A figure is a sentence with its interval, and the share of the ceilings weighs each op by its time."""

import pytest
from msgspec.structs import replace

from ace_studio.records.results import Baseline, Ceilings, OpReport, Result, ResultStatus, RunStatus, TargetRun
from tests.benchmarks.figures import Figure, ceilings_of, digits, sentence


def test_a_sentence_has_its_capital_letter_the_interval_and_whether_it_is_lost():
    figure = Figure(id="start.engine", what="the engine needs 1.23 s", value=1.2345, unit="s", low=1.1, high=1300.4)
    assert sentence(figure) == "The engine needs 1.23 s (95 %: 1.1 to 1,300)."
    assert sentence(replace(figure, low=None, lost=True)) == "**Lost.** The engine needs 1.23 s."


@pytest.mark.parametrize(("value", "words"), [(84.0, "84"), (1234.5, "1,234"), (0.85214, "0.852"), (331.4, "331")])
def test_numbers_have_three_digits_or_all_before_the_point(value, words):
    assert digits(value) == words


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
    (found,) = ceilings_of("time.vit", "the ViT", result)
    assert (found.id, found.value, found.peer_value) == ("time.vit.ceiling", 0.375, 0.75)
    assert found.what.startswith("the ViT at bf16 in OpenVINO reaches 38 % of what")
    assert ceilings_of("time.vit", "the ViT", replace(result, chosen=None)) == []
    assert ceilings_of("time.vit", "the ViT", replace(result, runs=(replace(run, ops=()),))) == []
