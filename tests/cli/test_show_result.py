"""What the command line says of a search for a goal, and of what became of the weights."""

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from ace_studio.cli.app import Console
from ace_studio.cli.show_result import show_changes, show_improvements, show_result, show_search
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.recipes.plan import PlanRule, Precision
from ace_studio.records.results import Improvement, Latency, Result, ResultStatus, RunStatus, SearchStep, TargetRun
from ace_studio.records.results.finetuning import FinetuneReport
from ace_studio.records.results.pruning import PruningReport

FP32 = Precision.FP32


def _result(*steps: SearchStep, chosen: int | None = None) -> Result:
    return Result(status=ResultStatus.OK, fingerprint="", environment={}, search=steps, chosen=chosen)


def test_the_ops_that_the_chosen_plan_keeps_high_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    rules = tuple(PlanRule(match=f"id:conv2d_{number}", precision=FP32) for number in range(10))
    first = SearchStep(target="openvino", low="int8-static", run=0, reused=True)
    mixed = SearchStep(
        target="onnxruntime", low="int8-static", high="fp32", kept_high=10, of=54, rules=rules, run=1, meets=True
    )
    show_search(_result(first, mixed, chosen=1), Console(as_json=False))
    said = " ".join(capsys.readouterr().out.split())
    assert "Search: 2 plans on openvino, onnxruntime, 1 of them known from an earlier run" in said
    assert "Kept at fp32: 10 of 54 ops: conv2d_0," in said
    assert "conv2d_7 and 2 more" in said


def test_the_table_has_the_gain_over_fp32_in_the_same_runtime(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    figures = {"status": RunStatus.OK, "latency_ms": Latency(p10=1.0, p50=1.0, p90=1.0, n=9), "speedup": 5.0}
    runs = (
        TargetRun(target="a", precision="fp32", **figures),
        TargetRun(target="a", precision="int8-static", float_speedup=1.25, **figures),
        TargetRun(target="b", precision="int8-static", **figures),
        TargetRun(target="c", precision="fp32", speed_undecided="slow", **figures),
    )
    show_result(replace(_result(), runs=runs), Console(as_json=False), tmp_path)
    shown = capsys.readouterr().out
    at = next(line.index("vs fp32") for line in shown.splitlines() if "vs fp32" in line)
    figures = [re.split(r"\s{2,}", line[at:])[0] for line in shown.splitlines() if " 5.00x " in line]
    assert figures == ["", "1.25x", "not measured"]
    assert "not decided" in next(line for line in shown.splitlines() if line.strip().startswith("c "))


def test_an_artifact_that_was_not_run_says_why(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    run = TargetRun(target="coreml", precision="fp16", status=RunStatus.OK, artifact="m", not_run="on a Mac only")
    show_result(replace(_result(), runs=(run,)), Console(as_json=False), tmp_path)
    shown = capsys.readouterr().out
    assert "coreml fp16: saved, but not run, compared or timed: on a Mac only" in shown
    assert re.search(r"coreml +fp16 +not run", shown)


def test_a_run_that_failed_says_why_and_what_to_do(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    error = Problem(code=ErrorCode.UNSUPPORTED, what="It has no kernel", why="too new", remedy="Take another target.")
    run = TargetRun(target="openvino", precision="fp32", status=RunStatus.FAILED, error=error)
    show_result(replace(_result(), runs=(run,)), Console(as_json=False), tmp_path)
    assert "openvino fp32: It has no kernel (too new)\n  remedy: Take another target.\n" in capsys.readouterr().out


def test_nothing_is_said_where_nothing_was_searched_for(capsys: pytest.CaptureFixture[str]) -> None:
    show_search(_result(), Console(as_json=False))
    assert capsys.readouterr().out == ""


def test_pruning_and_training_are_told_with_what_they_left(capsys: pytest.CaptureFixture[str]) -> None:
    pruning = PruningReport(
        method="structured", amount=0.2, parameters_before=100, parameters_after=64, macs_before=10, macs_after=7,
        sqnr_db=1.7,
    )  # fmt: skip
    finetune = FinetuneReport(
        method="distill", score_name="held-out SQNR", higher_is_better=True, before=1.7, after=5.0, kept=True,
        reason="held-out SQNR went from 1.7 to 5.0",
    )  # fmt: skip
    result = Result(status=ResultStatus.OK, fingerprint="", environment={}, pruning=pruning, finetune=finetune)
    show_changes(result, Console(as_json=False))
    said = " ".join(capsys.readouterr().out.split())
    assert "Pruned (structured): 64% of the weights and 70% of the arithmetic are left, 1.7 dB before" in said
    assert "Fine-tuned (distill), kept: held-out SQNR went from 1.7 to 5.0" in said


def test_what_steps_of_a_search_found_alike_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    one = Improvement(method="smoothquant", precision="int8-static", reason="no norm is there")
    result = Result(status=ResultStatus.OK, fingerprint="", environment={}, improvements=(one, one))
    show_improvements(result, Console(as_json=False))
    assert capsys.readouterr().out.count("no norm") == 1
