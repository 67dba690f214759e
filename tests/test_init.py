"""The package itself: cheap to import, and the Python function comes with its first use."""

import subprocess
import sys

import pytest

import ace_studio
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.results import Baseline, Latency, Result, ResultStatus, RunStatus, TargetRun


def test_importing_the_package_imports_neither_torch_nor_qt() -> None:
    code = "import sys, ace_studio; print(sorted({'torch', 'PySide6', 'ace_studio.api'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_python_function_is_the_one_of_the_api() -> None:
    from ace_studio import api

    assert ace_studio.compile is api.compile
    assert ace_studio.try_fixes is api.try_fixes


def test_an_unknown_name_is_an_attribute_error_that_names_it() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'compose'"):
        _ = ace_studio.compose


def test_a_result_is_shown_with_a_line_for_each_run_and_as_a_picture(tmp_path) -> None:
    from ace_studio.api import CompileResult

    latency = Latency(p50=2.0, p10=1.9, p90=2.2, n=30)
    good = TargetRun(
        target="onnxruntime", status=RunStatus.OK, precision="int8-static", latency_ms=latency, speedup=2.04,
        sqnr_db=41.0, size_bytes=250_000,
    )  # fmt: skip
    refused = Problem(code=ErrorCode.UNSUPPORTED, what="It has no such op")
    runs = (good, TargetRun(target="openvino", status=RunStatus.FAILED, precision="fp32", error=refused))
    report = Result(
        status=ResultStatus.OK,
        fingerprint="",
        environment={"measured_input": "1x40", "threads": 1},
        baseline=Baseline(latency_ms=latency),
        runs=runs,
        chosen=0,
    )
    result = CompileResult(report, tmp_path, None)
    assert result._repr_svg_() is None
    (tmp_path / "comparison.svg").write_text("<svg/>", encoding="utf-8")
    assert result._repr_svg_() == "<svg/>"
    assert repr(result).splitlines() == [
        f"CompileResult in {tmp_path}",
        "  input 1x40, 1 thread(s), 30 rounds",
        "  eager fp32: 2.000 ms",
        "* onnxruntime int8-static: 2.000 ms, 2.04x, 41.0 dB, 0.25 MB",
        "  openvino fp32: failed: It has no such op",
    ]
