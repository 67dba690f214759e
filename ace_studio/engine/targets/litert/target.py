"""LiteRT, known as TensorFlow Lite: a model for phones and small devices, run by XNNPACK wherever it can.

litert-torch converts the graph, ai-edge-quantizer gives the planned ops 8 bits, and LiteRT's interpreter runs the file,
with the same kernels that a device uses.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ace_studio.engine.flow import CapturedModel, Example
from ace_studio.engine.quantize.flat_graph import flat_graph
from ace_studio.engine.quantize.folding import fold_batch_norms
from ace_studio.engine.targets.base import Lowered, LoweringJob, OpActual, Target
from ace_studio.engine.targets.litert.convert import float_model
from ace_studio.engine.targets.litert.interpreter import LiteRtModel
from ace_studio.engine.targets.litert.model_file import kernels_of_file, with_limits
from ace_studio.engine.targets.litert.open_sizes import OpenSizesError
from ace_studio.engine.targets.litert.quantize import INT8, litert_op_problem, quantized_model
from ace_studio.engine.targets.shared.flat_call import FlatCall
from ace_studio.engine.targets.shared.kernels import actuals_of, heavy_ops
from ace_studio.engine.targets.shared.support import judge_torch_ops
from ace_studio.records.errors import ErrorCode, explained
from ace_studio.records.messages import Phase
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.results import OpSupport
from ace_studio.records.tensors import size_limits

_ARTIFACT = "model.tflite"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # its compiled part writes to the terminal as it pleases
_PROBLEMS = {
    Precision.FP32: "",
    Precision.INT8_STATIC: "",
    Precision.INT8_DYNAMIC: "",
    Precision.INT8_WEIGHT: "",
    Precision.FP16: "XNNPACK computes in fp16 on some processors only, and the Python interpreter cannot ask for it",
    Precision.BF16: "LiteRT has no bf16 kernels on a CPU",
    Precision.INT4_WEIGHT: "LiteRT multiplies 4-bit weights with 8-bit activations, which no plan asks for",
    Precision.FP8: "LiteRT has no fp8 kernels on a CPU",
}


class LiteRtTarget(Target):
    """XNNPACK where it can, LiteRT's own kernels for the rest."""

    modules = ("ai_edge_litert.interpreter", "ai_edge_quantizer.quantizer")

    def precision_problem(self, precision: Precision) -> str:
        """Why not, for what this target does not write or LiteRT does not have."""
        return _PROBLEMS[precision]

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
