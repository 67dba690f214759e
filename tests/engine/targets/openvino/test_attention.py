"""Attention as one operation of OpenVINO: equal to torch for every mask and size, or left in its parts."""

import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxscript")
pytest.importorskip("openvino")
pytest.importorskip("nncf")

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention as attention

from ace_studio.engine.targets import TARGETS
from ace_studio.engine.targets.onnx.program import export_onnx
from ace_studio.engine.targets.openvino import target as openvino
from ace_studio.engine.targets.openvino.attention import WHOLE, program_for_openvino, with_whole_attention
from ace_studio.engine.targets.openvino.library import import_openvino
from ace_studio.records.recipes.plan import Precision
from tests.engine.targets.onnx.test_attention import APART, captured_with, kinds, padding
from tests.engine.targets.onnx.test_attention import WHOLE as KERNELS
from tests.engine.targets.onnx_cases import job_for


def turned(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Tensor:
    """Queries and keys that are no projections as they are, as with rotary positions."""
    return attention(torch.cat([-q[..., 4:], q[..., :4]], -1), k.flip(-1), v, attn_mask=m[:, None, None, :])


def used_twice(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Tensor:
    found = attention(q, k, v, attn_mask=m[:, None, None, :] & m[:, None, :, None])
    return found + found.amax(1, keepdim=True)


CASES = {
    **KERNELS,
    "a mask per head": APART["a mask per head"],
    "turned queries": (turned, padding),
    "a result with another reader": (used_twice, padding),
}


@pytest.mark.parametrize("name", CASES)
def test_an_attention_becomes_one_operation_with_the_same_results_at_every_size(name):
    captured = captured_with(*CASES[name])
    job = job_for(TARGETS["openvino"], captured)
    lowered = TARGETS["openvino"].lower(job)
    whole = kinds(program_for_openvino(job))
    assert whole.count(WHOLE) == 1
    assert "Softmax" not in whole
    for example in captured.examples:
        torch.testing.assert_close(
            lowered(*example.args), captured.module(*example.args), rtol=1e-4, atol=1e-5, equal_nan=False
        )
    assert {one.op_id: one.actual for one in lowered.read_back()}["scaled_dot_product_attention"] == Precision.FP32


def test_a_causal_attention_with_a_past_stays_in_parts():
    captured = captured_with(*APART["causal with a past"])
    plain = export_onnx(captured)
    assert with_whole_attention(plain, captured) is plain


def test_an_attention_in_parts_gives_zeros_for_a_query_without_any_key():
    captured = captured_with(*APART["keys shared by heads"])
    job = job_for(TARGETS["openvino"], captured)
    lowered = TARGETS["openvino"].lower(job)
    assert WHOLE not in kinds(program_for_openvino(job))
    for example in captured.examples:
        torch.testing.assert_close(lowered(*example.args), captured.module(*example.args), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("precision", [Precision.INT8_DYNAMIC, Precision.INT8_STATIC])
def test_an_artifact_with_quantized_projections_needs_nothing_of_ours(precision, tmp_path, monkeypatch):
    monkeypatch.setattr(openvino, "quantizes_activations", lambda: True)  # read back as on a processor that does
    captured = captured_with(*KERNELS["a boolean row"])
    lowered = TARGETS["openvino"].lower(job_for(TARGETS["openvino"], captured, precision))
    found = {one.op_id: one.actual for one in lowered.read_back()}
    assert found["linear"] == precision
    assert found["scaled_dot_product_attention"] == Precision.FP32
    saved = import_openvino().Core().read_model(str(lowered.save(tmp_path)))
    assert [op.get_type_name() for op in saved.get_ops()].count("ScaledDotProductAttention") == 1


def test_the_plain_program_is_left_as_it_was():
    captured = captured_with(*KERNELS["a boolean row"])
    plain = export_onnx(captured)
    before = plain.model.SerializeToString(deterministic=True)
    assert with_whole_attention(plain, captured) is not plain
    assert plain.model.SerializeToString(deterministic=True) == before
