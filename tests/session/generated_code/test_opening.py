"""Python that opens an exported artifact and runs it as it was measured."""

from __future__ import annotations

import ast

import pytest

from ace_studio.records.results import RunStatus, TargetRun, Warning
from ace_studio.session.generated_code.opening import opening_code


def run(target, artifact="artifacts/00/model.bin"):
    return TargetRun(target=target, status=RunStatus.OK, artifact=artifact)


@pytest.mark.parametrize("target", ["onnxruntime", "openvino", "eager", "inductor", "aoti"])
def test_the_code_is_python_that_names_the_file(target):
    code = opening_code(run(target), "/it's here/model.bin", warnings=(), threads=2)
    ast.parse(code)
    assert '"/it\'s here/model.bin"' in code


def test_the_options_that_a_warning_asks_for_are_set():
    warning = Warning(code="artifact-options", what='Only with {"INFERENCE_PRECISION_HINT": "f32"}; else other')
    code = opening_code(run("openvino"), "m.xml", warnings=(warning,), threads=1)
    assert 'options = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}' in code


def test_there_is_no_code_for_a_folder_of_subgraphs():
    assert opening_code(run("onnxruntime", "artifacts/00"), "m", warnings=(), threads=1) == ""
