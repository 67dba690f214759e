"""LiteRT, known as TensorFlow Lite: a model for phones and small devices, run by XNNPACK wherever it can.

litert-torch converts the graph, ai-edge-quantizer gives the planned ops 8 bits, and LiteRT's interpreter runs the file,
with the same kernels that a device uses.

litert-torch names the tensors of a model by the module of each node (``nn_module_stack``), and keeps the name through
all of its rewriting; where ops are fused, the names are joined. So each node gets its op id as its module.

Dynamic sizes are left out of the conversion: litert-torch 0.10 fails at a linear layer with a dynamic batch. The graph
is converted at two sizes, and what differs between the two files is what has to stay open.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import fx

from ace_studio.engine.flow import CapturedModel, Example
from ace_studio.engine.quantize.flat_graph import OP_ID, flat_graph
from ace_studio.engine.quantize.folding import fold_batch_norms
from ace_studio.engine.quiet import hushed
from ace_studio.engine.replaced import replaced_attribute
from ace_studio.engine.targets.base import Lowered, LoweringJob, OpActual, Target
from ace_studio.engine.targets.litert.interpreter import LiteRtModel
from ace_studio.engine.targets.litert.model_file import kernels_of_file, with_limits
from ace_studio.engine.targets.litert.names import ids_in, kind_names, name_of
from ace_studio.engine.targets.litert.open_sizes import OpenSizesError, with_open_sizes
from ace_studio.engine.targets.litert.quantize import INT8, litert_op_problem, quantized_model
from ace_studio.engine.targets.shared.carried_ids import carried_id, carry_ids
from ace_studio.engine.targets.shared.flat_call import FlatCall
from ace_studio.engine.targets.shared.kernels import actuals_of, heavy_ops
from ace_studio.engine.targets.shared.support import judge_torch_ops
from ace_studio.engine.torch_private.exporting import export_program
from ace_studio.records.errors import ErrorCode, explained
from ace_studio.records.messages import Phase
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.results import OpSupport
from ace_studio.records.tensors import size_limits

_ARTIFACT = "model.tflite"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # its compiled part writes to the terminal as it pleases


class LiteRtTarget(Target):
    """XNNPACK where it can, LiteRT's own kernels for the rest."""

    modules = ("ai_edge_litert.interpreter", "ai_edge_quantizer.quantizer")
    precisions: ClassVar[Mapping[Precision, str]] = {
        **dict.fromkeys((Precision.FP32, Precision.INT8_STATIC, Precision.INT8_DYNAMIC, Precision.INT8_WEIGHT), ""),
        Precision.FP16: "XNNPACK computes in fp16 on some processors only, and the Python interpreter cannot ask "
        "for it",
        Precision.BF16: "LiteRT has no bf16 kernels on a CPU",
        Precision.INT4_WEIGHT: "LiteRT multiplies 4-bit weights with 8-bit activations, which no plan asks for",
        Precision.FP8: "LiteRT has no fp8 kernels on a CPU",
    }

    def kernel_problem(self, op: str, precision: Precision) -> str:
        """Why an op stays fp32."""
        return litert_op_problem(op, precision) if precision in INT8 else ""

    def support(self, captured: CapturedModel) -> list[OpSupport]:
        """Operators of torch are converted; those of a user's own or of a library have no kernel in the runtime."""
        return judge_torch_ops(captured, "LiteRT has no kernel of")

    def build(self, job: LoweringJob) -> Lowered:
        """Fold batch norms, convert in fp32, give the planned ops 8 bits, open the file."""
        graph_module = flat_graph(job.captured.program)
        folded = fold_batch_norms(graph_module, heavy_ops(job.captured.table))
        job.reporter.phase(Phase.LOWER, "converting to LiteRT")
        what = "LiteRT cannot leave the dynamic sizes of this model open"
        remedy = "Make all dimensions but one static ([inputs.dims] in the recipe), or use another target."
        with explained(ErrorCode.UNSUPPORTED, what, remedy=remedy, of=OpenSizesError):
            content = job.once("litert_float", lambda: float_model(graph_module, job.captured))
            if job.plan.precisions & INT8:
                job.reporter.phase(Phase.COMPRESS, "int8 ops")
            content, notes = quantized_model(content, job)
        return LiteRtLowered(job, with_limits(content, size_limits(job.captured.inputs)), folded=folded, notes=notes)

    def load(self, path: Path, *, threads: int) -> Callable[..., Any]:
        """Open ``model.tflite``."""
        self.require()
        return LiteRtModel(path.read_bytes(), threads=threads, name=path.name)


class LiteRtLowered(Lowered):
    """An opened model, with the job that it was built for."""

    runs_in_torch = False

    def __init__(
        self, job: LoweringJob, content: bytes, *, folded: Mapping[str, str], notes: Mapping[str, str]
    ) -> None:
        self._job = job
        self._content = content
        self._folded = folded
        self._notes = notes
        self._model = LiteRtModel(content, threads=job.threads, name=_ARTIFACT)
        self._call = FlatCall(job.captured).around(self._model)

    def bare(self, example: Example) -> Callable[[], object]:
        """Inputs set from arrays, one run, outputs taken."""
        return self._model.bare(example.tensors())

    def read_back(self) -> list[OpActual]:
        """Read the types in the file, and from the interpreter which ops XNNPACK runs."""
        kernels = kernels_of_file(self._content, self._model.delegated(), self._job)
        folded = {op_id: f"folded into {home} in fp32" for op_id, home in self._folded.items()}
        return actuals_of(self._job, kernels, runtime="LiteRT", folded=folded, notes=self._notes)

    def save(self, folder: Path) -> Path:
        """Write ``model.tflite``."""
        path = folder / _ARTIFACT
        path.write_bytes(self._content)
        return path


def float_model(graph_module: fx.GraphModule, captured: CapturedModel) -> bytes:
    """The content of a ``.tflite`` file that computes a `flat_graph` in fp32.

    Raises: OpenSizesError if a size cannot stay open; what litert-torch raises for a graph that it cannot convert.
    """
    from ai_edge_litert.tools import flatbuffer_utils

    model = flatbuffer_utils.read_model_from_bytearray(bytearray(_converted(graph_module, captured.example)))
    if any(captured.dynamic_dims()):
        other = _converted(graph_module, _of_other_sizes(captured))
        with_open_sizes(model, flatbuffer_utils.read_model_from_bytearray(bytearray(other)), kind_names())
    _name_outputs(model, graph_module)
    return bytes(flatbuffer_utils.convert_object_to_bytearray(model))


def _of_other_sizes(captured: CapturedModel) -> Example:
    """An example with another size in each dynamic dimension, which is not 1: the converter leaves such ones out.

    Raises: OpenSizesError if there is none.
    """
    traced = captured.example.tensors()
    for example in captured.examples:
        pairs = zip(traced, example.tensors(), captured.dynamic_dims(), strict=True)
        if all(other.shape[dim] not in (one.shape[dim], 1) for one, other, dims in pairs for dim in dims):
            return example
    raise OpenSizesError("no example differs from the traced one in every dynamic size")


def _converted(graph_module: fx.GraphModule, example: Example) -> bytes:
    """The model at the sizes of an example."""
    inputs = tuple(tensor.contiguous() for tensor in example.tensors())
    with torch.no_grad(), hushed():
        import litert_torch

        program = export_program(graph_module, inputs, {}, dynamic_shapes=None, strict=False)
        _name_after_ops(graph_module.graph, program.graph)
        # It exports the module itself, which would lose the names, so it is handed the program.
        with replaced_attribute(torch.export, "export", lambda *_, **__: program):
            model: Any = litert_torch.convert(graph_module.eval(), inputs)
        return bytes(model.model_content())


def _name_after_ops(old: fx.Graph, new: fx.Graph) -> None:
    """Write the op ids where litert-torch looks for names."""
    carry_ids(old, new)
    for node in new.nodes:
        if node.op == "call_function":
            op_id = carried_id(node)
            node.meta["nn_module_stack"] = {"": ("", name_of(op_id))} if op_id else {}


def _name_outputs(model: Any, graph_module: fx.GraphModule) -> None:
    """Name each output of the model after its op: the converter has given it a name of its own."""
    graph = model.subgraphs[0]
    results: Any = graph_module.graph.output_node().args[0]
    for place, node in zip(graph.outputs, results, strict=True):
        meta: Mapping[str, Any] = node.meta
        if OP_ID in meta and not ids_in(graph.tensors[place].name.decode()):
            graph.tensors[place].name = f"{name_of(meta[OP_ID])};output_{place}".encode()
