"""The report of a run that pruned, trained, followed advice and gives some: all of it is there, and escaped."""

from __future__ import annotations

from ace_studio.engine.report import write_report
from ace_studio.records.advice import Advice, AdviceOutcome, AdviceQuantity
from ace_studio.records.results import Result, ResultStatus, decode_result
from ace_studio.records.results.finetuning import FinetuneEpoch, FinetuneReport
from ace_studio.records.results.pruning import PrunedLayer, PruningReport

HOSTILE = "<script>alert(1)</script>"
LAYER = PrunedLayer(
    module=HOSTILE, type="Linear", shape_before="32x16", shape_after="16x16", weights_before=512, weights_after=256,
    macs_before=512, macs_after=256, bytes_before=2048, bytes_after=1024, sqnr_db=9.5,
)  # fmt: skip
RESULT = Result(
    status=ResultStatus.OK,
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
    write_report(RESULT, None, tmp_path)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    for words in ("16x16", "256 of 512", "8.2", "It is faster.", "21.5000", "0.12500", "it went up"):
        assert words in text
    for words in ("Try bf16", "about 2 times", "Sleep on it.", "bf16", "Use all cores", "80% of the estimate"):
        assert words in text
    assert "<script" not in text and "&lt;script&gt;" in text


def test_what_was_done_comes_back_from_result_json(tmp_path):
    write_report(RESULT, None, tmp_path)
    assert decode_result((tmp_path / "result.json").read_bytes()) == RESULT
