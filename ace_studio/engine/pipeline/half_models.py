"""Makes a model with 16-bit weights ready for a CPU: a copy at fp32, and data at fp32 for it.

Checkpoints of large models are stored at bfloat16 or float16. On a CPU few kernels take such a graph: ONNX Runtime and
OpenVINO refuse it, and no target quantizes it. A float32 number holds every number of both types, so no weight changes.
"""

import copy
import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import torch.utils._pytree as pytree
from torch import Tensor, nn

from ace_studio.engine.examples.containers import register_containers
from ace_studio.engine.flow import DataSources, Example, GivenModel, LoadedModel
from ace_studio.engine.flow.module_state import state_put_back
from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.casts import HALF_DTYPES
from ace_studio.records.errors import message_of

_HALVES = frozenset(HALF_DTYPES.values())


def at_fp32(
    loaded: LoadedModel, examples: tuple[Example, ...], reporter: Reporter
) -> tuple[LoadedModel, tuple[Example, ...]]:
    """The model and its data at fp32, with the user's module as ``given``; unchanged without 16-bit weights.

    It also stays as it is, with a warning, if it cannot be copied or does not run at fp32.

    Args:
        loaded: A model on the CPU.
        examples: Examples to trace.
        reporter: Gets a warning that says what was done.
    """
    halves = tuple(sorted({one.dtype for one in loaded.module.parameters()} & _HALVES, key=str))
    if not halves:
        return loaded, examples
    given = GivenModel(loaded.module, halves, tuple(leaf.dtype for leaf in examples[0].tensors()))
    wide = tuple(map(_at_fp32, examples))
    try:
        module, reference = _wide_copy(loaded.module), loaded.reference and _wide_copy(loaded.reference)
        with state_put_back(module):
            wide[0].copied().call(module)
    except Exception as error:  # noqa: BLE001 - the user's code raises anything
        reporter.warn(
            "half-model",
            f"Weights of the model are {given.types}, and it does not run at float32 ({type(error).__name__}: "
            f"{message_of(error, limit=200)}): few runtimes take such a graph on a CPU, and fewer in 8 bits. Let "
            "forward() use the type of the weights or of the inputs in place of a fixed one",
        )
        return loaded, examples
    reporter.warn(
        "half-model",
        f"Weights of the model are {given.types}. It was converted to float32, with the same numbers, as few runtimes "
        "take other graphs on a CPU: artifacts take and give float32, and latency and size are compared with the "
        "float32 model's. Targets have 16-bit arithmetic of their own (bf16 and fp16 in the plan)",
    )
    changed = replace(loaded, module=module, reference=reference, data=_wide_data(loaded.data), given=given)
    return changed, wide


def _wide_copy(module: nn.Module) -> nn.Module:
    """A copy at fp32; other types, such as float64 and integers, stay."""
    wide = copy.deepcopy(module)
    for tensor in (*wide.parameters(), *wide.buffers()):
        tensor.data = _wide(tensor.data)
    return wide


def _wide(tensor: Tensor) -> Tensor:
    return tensor.float() if tensor.dtype in _HALVES else tensor


def _at_fp32(value: Any) -> Any:
    """A value of the user's with its 16-bit tensors at fp32, in any container."""
    if isinstance(value, Example):
        return value.map_tensors(_wide)
    register_containers(value)
    return pytree.tree_map_only(Tensor, _wide, value)


def _wide_data(data: DataSources) -> DataSources:
    functions = {name: getattr(data, name) for name in ("tracing", "calibration", "labelled", "finetune")}
    changed: dict[str, Any] = {name: _giving_fp32(one) for name, one in functions.items() if one is not None}
    if data.evaluate is not None:
        changed["evaluate"] = _predicting_at_fp32(data.evaluate)
    return replace(data, examples=tuple(map(_at_fp32, data.examples)), **changed)


def _giving_fp32(function: Callable[[], Iterable[object]]) -> Callable[[], Iterable[object]]:
    @functools.wraps(function)
    def given() -> Iterable[object]:
        values = function()
        is_whole = isinstance(values, Tensor | Mapping | tuple | list) or not isinstance(values, Iterable)
        return _at_fp32(values) if is_whole else map(_at_fp32, values)

    return given


def _predicting_at_fp32(metric: Callable[[Callable[..., Any]], Any]) -> Callable[[Callable[..., Any]], Any]:
    @functools.wraps(metric)
    def measured(predict: Callable[..., Any]) -> Any:
        return metric(lambda *args, **kwargs: predict(*_at_fp32(args), **_at_fp32(kwargs)))

    return measured
