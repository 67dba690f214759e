"""Resizes with a filter in both runtimes: at every size, up and down, as torch computes them."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnxscript")
pytest.importorskip("onnxruntime")
pytest.importorskip("openvino")
pytest.importorskip("nncf")

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from ace_studio.engine.targets import TARGETS
from ace_studio.engine.targets.openvino.attention import read_onnx
from ace_studio.engine.targets.openvino.library import import_openvino
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.plan import Precision
from tests.engine.targets.onnx_cases import capture, job_for, sqnr_db
from tests.tiny_models import TinyModel


class Thumbnails(nn.Module):
    """uint8 pictures to two sizes, by factors and by a share of their size."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU())

    def forward(self, picture: Tensor) -> tuple[Tensor, ...]:
        x = picture.float() / 255
        small = interpolate(x, size=(20, 24), mode="bicubic", antialias=True)
        return (
            self.net(small),
            interpolate(small, size=(13, 31), mode="bilinear", antialias=True),
            interpolate(x, scale_factor=0.37, mode="bilinear", antialias=True),
            interpolate(x, scale_factor=(1.9, 0.3), mode="bicubic", antialias=True),
            interpolate(x, size=(x.shape[2] // 2, 40), mode="bicubic", antialias=True),
            interpolate(x, size=(9, 44), mode="bilinear", antialias=True, align_corners=True),
        )


def pictures(*shape: int) -> Tensor:
    made = torch.Generator().manual_seed(sum(shape))
    return torch.randint(0, 255, shape, dtype=torch.uint8, generator=made)


FRESH = [(1, 3, 96, 121), (2, 3, 10, 12), (1, 3, 33, 200), (1, 3, 20, 24), (3, 3, 13, 29)]


@pytest.fixture(scope="module")
def captured():
    torch.manual_seed(0)
    return capture(TinyModel(Thumbnails().eval(), [(pictures(1, 3, 40, 50),), (pictures(2, 3, 61, 35),)]))


@pytest.mark.parametrize("name", ["onnxruntime", "openvino"])
def test_filters_are_those_of_torch_at_every_size(captured, name):
    lowered = TARGETS[name].lower(job_for(TARGETS[name], captured))
    for shape in FRESH:
        x = pictures(*shape)
        for one, other in zip(captured.module(x), lowered(x), strict=True):
            assert sqnr_db([one], [other]) > 80, shape


def test_the_artifact_holds_openvinos_own_operation(captured, tmp_path):
    target = TARGETS["openvino"]
    path = target.lower(job_for(target, captured, Precision.INT8_STATIC)).save(tmp_path)
    compiled = import_openvino().Core().compile_model(str(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    x = pictures(2, 3, 70, 90)
    found = [torch.from_numpy(np.array(one)) for one in compiled(x.numpy()).values()]
    for one, other in zip(captured.module(x), found, strict=True):
        assert sqnr_db([one], [other]) > 28


def resize_of_a_file(**attributes):
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 3, "h", "w"]) for name in "xy"]
    resize = helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], "shrink", antialias=1, axes=[2, 3], **attributes)
    sizes = [numpy_helper.from_array(np.array([9, 11]), "sizes")]
    graph = helper.make_graph([resize], "g", value[:1], value[1:], sizes)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    onnx.checker.check_model(model)
    return model


@pytest.mark.parametrize(
    "given", [{"mode": "linear"}, {"mode": "cubic", "cubic_coeff_a": -0.5}], ids=["linear", "cubic"]
)
def test_a_resize_of_a_file_is_that_of_onnx_runtime(given):
    import onnxruntime

    model = resize_of_a_file(exclude_outside=1, **given)
    x = np.random.default_rng(0).random((2, 3, 30, 7), np.float32)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    exact = {"INFERENCE_PRECISION_HINT": "f32"}
    compiled = import_openvino().Core().compile_model(read_onnx(model), "CPU", exact)
    np.testing.assert_allclose(compiled(x)[0], session.run(None, {"x": x})[0], atol=1e-5)


@pytest.mark.parametrize(
    "given",
    [
        {"mode": "cubic", "cubic_coeff_a": -0.75, "exclude_outside": 1},
        {"mode": "linear"},
        {"mode": "linear", "exclude_outside": 1, "coordinate_transformation_mode": "align_corners"},
    ],
    ids=["another coefficient", "what lies outside", "corners"],
)
def test_another_filter_is_refused_by_name(given):
    with pytest.raises(AceError, match="shrink") as caught:
        read_onnx(resize_of_a_file(**given))
    assert caught.value.problem.code is ErrorCode.UNSUPPORTED
