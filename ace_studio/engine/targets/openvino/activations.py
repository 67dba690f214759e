"""Whether OpenVINO quantizes activations on the fly on this processor, which it does not tell."""

from functools import cache

import numpy as np

from ace_studio.engine.targets.openvino.library import import_openvino

NOT_QUANTIZED = (
    "on this processor OpenVINO quantizes no activations on the fly (it needs avx512_vnni or avx_vnni), "
    "so the 8-bit weights are multiplied with float activations"
)


@cache
def quantizes_activations() -> bool:
    """Whether dynamic quantization changes the results of a small product with packed 8-bit weights.

    Without the instructions for it OpenVINO takes the option and computes with float activations, in silence.
    """
    openvino = import_openvino()
    ops = openvino.opset13
    random = np.random.default_rng(0)
    x = ops.parameter([4, 64], np.float32)
    weights = ops.convert(ops.constant(random.integers(-127, 128, (64, 64)).astype(np.int8)), np.float32)
    scales = ops.constant(np.full((64, 1), 0.01, np.float32))
    model = openvino.Model([ops.matmul(x, ops.multiply(weights, scales), False, True)], [x])
    values = random.standard_normal((4, 64)).astype(np.float32)

    def computed(group: str) -> np.ndarray:
        options = {
            "INFERENCE_PRECISION_HINT": "f32",
            "DYNAMIC_QUANTIZATION_GROUP_SIZE": group,
            "INFERENCE_NUM_THREADS": "1",
        }
        return np.asarray(openvino.Core().compile_model(model, "CPU", options)(values)[0])

    return not np.array_equal(computed("0"), computed("32"))
