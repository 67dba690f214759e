"""Keeps inputs that no op reads: OpenVINO leaves them out when it reads an ONNX model."""

from typing import Any

from ace_studio.engine.targets.openvino.library import import_openvino


def with_every_input(read: Any, model: Any) -> Any:
    """The model with all inputs of the ONNX model, in its order; as it is if it has them.

    Args:
        read: The ``openvino.Model`` that OpenVINO read.
        model: The ``onnx.ModelProto`` that it read.
    """
    from onnx import helper

    openvino = import_openvino()
    stored = {tensor.name for tensor in model.graph.initializer}
    wanted = [entry for entry in model.graph.input if entry.name not in stored]
    found = {name: one for one in read.get_parameters() for name in one.output(0).get_names()}
    if found.keys() >= {entry.name for entry in wanted}:
        return read
    for entry in wanted:
        if entry.name not in found:
            tensor = entry.type.tensor_type
            sizes = [dim.dim_value if dim.HasField("dim_value") else -1 for dim in tensor.shape.dim]
            dtype = openvino.Type(helper.tensor_dtype_to_np_dtype(tensor.elem_type))
            parameter = openvino.opset13.parameter(openvino.PartialShape(sizes), dtype, name=entry.name)
            parameter.output(0).get_tensor().set_names({entry.name})
            found[entry.name] = parameter
    parameters = [found[entry.name] for entry in wanted]
    return openvino.Model(read.get_results(), read.get_sinks(), parameters, read.get_friendly_name())
