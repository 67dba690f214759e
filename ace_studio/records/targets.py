"""The targets, one row each: what is known of a runtime before it is imported.

A target is a row here and a class in a folder of ``ace_studio/engine/targets``. Recipe checks, the window, the advice
and the engine read the row. `register` adds a row from outside of the package.
"""

from __future__ import annotations

import json
import os
from enum import StrEnum
from pathlib import Path

import msgspec

from ace_studio.records.recipes.plan import Precision

ROWS_VARIABLE = "ACE_STUDIO_TARGETS"
"""Environment variable with the registered rows as JSON: processes that are started later read it."""


class RoundingStyle(StrEnum):
    """What a runtime rounds around 8-bit ops at int8-static; `engine/quantize/simulate/int8_style.py` simulates it."""

    READS = "reads"
    """Only what an 8-bit op reads."""
    NNCF = "nncf"
    """The same, but a small convolution at the end of the model stays float."""
    RESULTS = "results"
    """What it reads, and every result."""
    PAIRS = "pairs"
    """As pairs of QuantizeLinear and DequantizeLinear in an ONNX model say."""


class TargetRow(msgspec.Struct, frozen=True, kw_only=True):
    """One target."""

    name: str
    """As recipes and results write it."""
    label: str
    """As people write it."""
    implementation: str
    """Subclass of `engine.targets.base.Target`: ``package.module:Class`` or ``/path/to/file.py:Class``."""
    packages: tuple[str, ...] = ()
    """Packages besides torch that it needs; the first is the runtime itself, whose version is shown."""
    install: str = ""
    """Command line that installs them all, in the versions that the project supports."""
    opener: str = ""
    """Entry of `OPENERS` in ``run_pieces.py`` that opens a saved subgraph; empty: the entry with this target's name."""
    opening_code: str = ""
    """Python that opens an artifact, and calls it in its last line. ``{path}``, ``{threads}`` and ``{options}`` are
    filled in, ``inputs`` are NumPy arrays. Empty: there is no short one."""
    opening_imports: tuple[str, ...] = ()
    """Modules of torch that opening an artifact imports, and ``import torch`` does not."""
    frontends: tuple[str, ...] = ("torch",)
    """Kinds of models that it takes: ``torch`` (captured from Python) and ``onnx`` (read from an ONNX file)."""
    rounding: RoundingStyle = RoundingStyle.READS
    times_source: str = ""
    """How the latency of a single op is found; empty: by the runtime's own counters."""
    convolution_speedups: dict[Precision, float] = {}
    """Typical speed-up over eager fp32 on convolutional networks; a precision that was not measured is left out."""
    matrix_speedups: dict[Precision, float] = {}
    """The same on networks of matrix products."""
    is_built_for_sizes: bool = False
    """Whether an artifact takes only sizes up to a bound, which the user may choose."""
    is_in_auto: bool = True
    """Whether ``auto`` selects it. False if another target runs the same code and builds faster."""
    is_soon_built: bool = False
    """Whether building takes about as long as opening the artifact; then no other process builds it in advance."""

    has_one_float: bool = False
    """Whether all ops in floating point share one type: then 16 bits at one op mean 16 bits at all that are not low."""

    def typical_speedup(self, precision: str, *, is_convolutional: bool) -> float | None:
        """Typical speed-up over eager fp32; None where nothing was measured."""
        speedups = self.convolution_speedups if is_convolutional else self.matrix_speedups
        return next((speedup for known, speedup in speedups.items() if str(known) == precision), None)


_ONNX_PACKAGES = "'onnx>=1.17,<2' 'onnxscript>=0.5,<1' 'onnxruntime>=1.23,<2'"
_OPENING: dict[str, list[str]] = json.loads(Path(__file__).with_name("opening.json").read_text(encoding="utf-8"))
_COMPILER = ("torch._dynamo",)

# The speed-ups were measured with one thread on a Zen 4 processor (avx512_vnni, avx512_bf16) with torch 2.13,
# interleaved: ResNet50 and MobileNetV2 for convolutions, MiniLM and BERT for matrices. Other processors differ.
_ROWS = (
    TargetRow(
        name="eager",
        label="PyTorch eager",
        implementation="ace_studio.engine.targets.torch.eager:EagerTarget",
        opening_imports=_COMPILER,
        opening_code="\n".join(_OPENING["exported"]),
        times_source="each op of the captured graph called by itself in eager torch; median of several rounds",
        is_soon_built=True,
    ),
    TargetRow(
        name="inductor",
        label="PyTorch Inductor",
        implementation="ace_studio.engine.targets.torch.inductor:InductorTarget",
        opening_imports=_COMPILER,
        opening_code="\n".join(_OPENING["compiled"]),
        install="apt-get install g++",
        times_source="each kernel and library call of the compiled code by itself; median of several rounds",
        convolution_speedups={Precision.FP32: 1.5, Precision.BF16: 2.5, Precision.INT8_STATIC: 3.6},
        matrix_speedups={
            Precision.FP32: 1.05,
            Precision.BF16: 2.0,
            Precision.INT8_DYNAMIC: 2.8,
            Precision.INT8_STATIC: 2.9,
        },
    ),
    TargetRow(
        name="aoti",
        label="AOTInductor",
        implementation="ace_studio.engine.targets.torch.aoti:AotiTarget",
        opening_imports=_COMPILER,
        opening_code="\n".join(_OPENING["package"]),
        install="apt-get install g++",
        is_in_auto=False,  # as fast as Inductor, but the build takes several times as long
    ),
    TargetRow(
        name="onnxruntime",
        label="ONNX Runtime",
        implementation="ace_studio.engine.targets.onnxruntime.target:OnnxRuntimeTarget",
        opening_code="\n".join(_OPENING["onnx"]),
        packages=("onnxruntime", "onnx", "onnxscript"),
        install=f"pip install {_ONNX_PACKAGES}",
        frontends=("torch", "onnx"),
        rounding=RoundingStyle.PAIRS,
        times_source="ONNX Runtime's own profiler; median of several calls",
        convolution_speedups={Precision.FP32: 1.8, Precision.INT8_STATIC: 4.9},
        matrix_speedups={Precision.FP32: 1.1, Precision.INT8_DYNAMIC: 2.7, Precision.INT8_STATIC: 2.1},
    ),
    TargetRow(
        name="openvino",
        label="OpenVINO",
        implementation="ace_studio.engine.targets.openvino.target:OpenVinoTarget",
        opening_code="\n".join(_OPENING["openvino"]),
        packages=("openvino", "nncf", "onnx", "onnxscript"),
        install="pip install 'onnx>=1.17,<2' 'onnxscript>=0.5,<1' 'openvino>=2025.3,<2027' 'nncf>=3.0,<4'",
        frontends=("torch", "onnx"),
        rounding=RoundingStyle.NNCF,
        times_source="OpenVINO's performance counters; mean of three calls after a first",
        has_one_float=True,
        convolution_speedups={Precision.FP32: 1.8, Precision.BF16: 3.4, Precision.INT8_STATIC: 5.3},
        matrix_speedups={Precision.FP32: 1.2, Precision.BF16: 2.1, Precision.INT8_STATIC: 3.4},
    ),
    TargetRow(
        name="executorch",
        is_built_for_sizes=True,
        label="ExecuTorch",
        implementation="ace_studio.engine.targets.executorch.target:ExecuTorchTarget",
        packages=("executorch",),
        install="pip install 'executorch>=1.4,<1.6'",
        rounding=RoundingStyle.RESULTS,
    ),
    TargetRow(
        name="litert",
        label="LiteRT",
        implementation="ace_studio.engine.targets.litert.target:LiteRtTarget",
        opening_code="\n".join(_OPENING["litert"]),
        packages=("ai_edge_litert", "ai_edge_quantizer", "litert_torch"),
        install="pip install 'litert-torch>=0.10,<0.11'",
        rounding=RoundingStyle.RESULTS,
    ),
    TargetRow(
        name="coreml",
        is_built_for_sizes=True,
        label="Core ML",
        implementation="ace_studio.engine.targets.coreml.target:CoreMlTarget",
        opening_code="\n".join(_OPENING["core_ml"]),
        packages=("coremltools",),
        install="pip install 'coremltools>=9,<10'",
        rounding=RoundingStyle.RESULTS,
    ),
    TargetRow(
        name="torchao-cuda",
        label="torchao on CUDA",
        implementation="ace_studio.engine.targets.torch.torchao_cuda:TorchaoCudaTarget",
        opening_imports=_COMPILER,
        packages=("torchao",),
        install="pip install 'torchao>=0.14,<0.20'",
        opener="inductor",
    ),
    TargetRow(
        name="tensorrt",
        is_built_for_sizes=True,
        label="TensorRT",
        implementation="ace_studio.engine.targets.tensorrt.target:TensorRtTarget",
        packages=("tensorrt", "onnx", "onnxscript", "onnxruntime"),
        install=f"pip install 'tensorrt>=10,<11' {_ONNX_PACKAGES}",
        rounding=RoundingStyle.PAIRS,
    ),
)

TARGET_ROWS: dict[str, TargetRow] = {row.name: row for row in _ROWS}
"""Name -> row, in the order in which they are shown and built."""


def register(row: TargetRow) -> None:
    """Add a target, for this process and for every process that it starts from now on.

    Raises: ValueError if another target has the name.
    """
    if TARGET_ROWS.setdefault(row.name, row) != row:
        raise ValueError(f"there is a target named '{row.name}' already")
    registered = [one for one in TARGET_ROWS.values() if one not in _ROWS]
    os.environ[ROWS_VARIABLE] = msgspec.json.encode(registered).decode()


def targets_for(frontend: str) -> tuple[str, ...]:
    """Names of the targets that take models of a frontend, ``torch`` or ``onnx``."""
    return tuple(row.name for row in TARGET_ROWS.values() if frontend in row.frontends)


for _row in msgspec.json.decode(os.environ.get(ROWS_VARIABLE, "[]"), type=list[TargetRow]):
    TARGET_ROWS[_row.name] = _row
