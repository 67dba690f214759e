"""Says, before the model is exported, which operators have an ONNX form and which of those OpenVINO reads."""

from collections.abc import Iterable
from functools import cache
from typing import Any

from torch import fx

from ace_studio.engine.targets.openvino.library import import_openvino
from ace_studio.engine.targets.shared.support import NATIVE, Verdict, judged_by_leaves
from ace_studio.engine.torch_private.onnx import onnx_translations
from ace_studio.engine.torch_private.operators import functional_form, is_higher_order, is_operator
from ace_studio.records.results import SupportStatus

_INLINED = "wrap_"
"""Prefix of the higher-order operators that the exporter inlines."""
_NO_RULE = "No conversion rule found for operations: "


def onnx_verdict(node: fx.Node) -> Verdict:
    """Whether torch's ONNX exporter can write the op."""
    translations = onnx_translations()

    def has(target: Any) -> bool:
        return translations.has(functional_form(target))

    if not is_operator(node.target):
        return NATIVE if has(node.target) or not _is_block(node.target) else _without_onnx(str(node.target))
    return judged_by_leaves(node, translations.decompositions, has=has, missing=_without_onnx)


def openvino_verdict(node: fx.Node) -> Verdict:
    """Whether the op has an ONNX form that OpenVINO can read."""
    verdict = onnx_verdict(node)
    if verdict.status is not SupportStatus.NATIVE or not is_operator(node.target):
        return verdict
    unread = unread_onnx_ops(onnx_translations().onnx_ops(functional_form(node.target)))
    if not unread:
        return verdict
    names = ", ".join(sorted(unread))
    why = f"It becomes ONNX's {names}, for which OpenVINO has no rule; the model cannot be built for this target."
    return Verdict(SupportStatus.UNSUPPORTED, why)


def _without_onnx(op: str) -> Verdict:
    why = f"It needs {op}, which has no ONNX form; the model cannot be built for this target."
    return Verdict(SupportStatus.UNSUPPORTED, why)


def _is_block(target: Any) -> bool:
    """Whether the op holds graphs of its own, such as ``cond``, and is not inlined."""
    return is_higher_order(target) and not str(target).startswith(_INLINED)


def unread_onnx_ops(names: Iterable[str]) -> frozenset[str]:
    """Those of the ONNX operators that OpenVINO has no rule for."""
    return frozenset(name for name in names if _is_unread(name))


@cache
def _is_unread(name: str) -> bool:
    """Whether OpenVINO refuses to read a model of this one operator; the inputs need not fit it."""
    import onnx

    if not onnx.defs.has(name):
        return False  # a helper function of the exporter, not an operator
    inputs = [f"input_{index}" for index in range(max(1, onnx.defs.get_schema(name).min_input))]
    values = [onnx.helper.make_tensor_value_info(one, onnx.TensorProto.FLOAT, [2, 3]) for one in inputs]
    result = onnx.helper.make_tensor_value_info("result", onnx.TensorProto.FLOAT, None)
    graph = onnx.helper.make_graph([onnx.helper.make_node(name, inputs, ["result"])], "probe", values, [result])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)])
    model.ir_version = 9
    try:
        import_openvino().Core().read_model(model.SerializeToString())
    except RuntimeError as error:
        return f"{_NO_RULE}{name}-" in str(error)
    return False
