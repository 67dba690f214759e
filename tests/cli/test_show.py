"""What the command line shows of a capture."""

import re

from msgspec.structs import replace

from ace_studio.cli.app import Console
from ace_studio.cli.show import captured_words, show_capture, show_environment
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.messages import EnvironmentReport, TargetReport
from ace_studio.records.results import AttemptStatus, CaptureAttempt, CaptureReport
from ace_studio.records.tensors import DimFinding, DimVerdict, InputFinding


def test_a_capture_from_the_cache_says_so():
    report = CaptureReport(rung="export", ops=3, seconds=0.1, cached=True)
    assert "cache" in captured_words(report)


def test_a_capture_lists_what_each_capture_method_gave_and_the_verdict_on_every_dimension(capsys):
    failed = CaptureAttempt(
        name="export",
        status=AttemptStatus.FAILED,
        seconds=1.0,
        error=Problem(code=ErrorCode.NOT_CAPTURED, what="it branches"),
    )
    dims = (
        DimFinding(index=0, verdict=DimVerdict.DYNAMIC, size=1, symbol="s0", min=1, verified_sizes=(1, 3)),
        DimFinding(index=1, verdict=DimVerdict.STATIC, size=8),
    )
    inputs = (InputFinding(name="x", dtype="float32", dims=dims),)
    show_capture(CaptureReport(rung="fx", ops=3, seconds=0.1, rungs=(failed,), inputs=inputs), Console(as_json=False))
    out = capsys.readouterr().out
    for words in ("Captured 3 ops with fx", "it branches", "dynamic s0 in [1, \u221e]", "1, 3", "static 8"):
        assert words in out


def test_what_a_target_lacks_is_one_unbroken_line_for_the_python_that_was_looked_at(capsys):
    packages = " ".join(f"'package-number-{number}>=1,<2'" for number in range(20))
    lacking = TargetReport(name="far", label="Far", available=False, reason="gone", install=f"pip install {packages}")
    there = TargetReport(name="near", label="Near", available=True)
    there = replace(there, precisions={"fp16": ""}, not_run="runs on a Mac only")
    report = EnvironmentReport(
        python="3", executable="/a b/python", platform="x", cpu="c", cores=1, memory_bytes=1, versions={},
        targets=(lacking, there),
    )  # fmt: skip
    show_environment(report, Console(as_json=False))
    out = capsys.readouterr().out
    assert f"what far lacks: '/a b/python' -m pip install {packages}\n" in out and "what near lacks" not in out
    assert re.search(r"near +yes, to save: runs on a Mac only +fp16", out)
