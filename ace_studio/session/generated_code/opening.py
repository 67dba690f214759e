"""Python that opens an exported artifact and runs it as it was measured."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ace_studio.records.results import TargetRun, Warning

_OPTION = re.compile(r'\{("[A-Z_]+": "[^"]*")\}')
_ONNX = """\
import onnxruntime

options = onnxruntime.SessionOptions()
options.intra_op_num_threads = {threads}
session = onnxruntime.InferenceSession({path!r}, options, providers=["CPUExecutionProvider"])
outputs = session.run(None, dict(zip([one.name for one in session.get_inputs()], inputs)))"""
_OPENVINO = """\
import openvino

options = {{{options}"INFERENCE_NUM_THREADS": {threads}}}
model = openvino.Core().compile_model({path!r}, "CPU", options)
outputs = list(model(inputs).values())"""
_EXPORTED = """\
import torch
import torch.ao.quantization.fx._decomposed  # registers the 8-bit operators

torch.set_num_threads({threads})
model = {wrap}(torch.export.load({path}).module())
outputs = model(*map(torch.from_numpy, inputs))"""
_PACKAGE = """\
import torch

outputs = torch._inductor.aoti_load_package({path!r})(*map(torch.from_numpy, inputs))"""
_CODE = {
    "onnxruntime": _ONNX,
    "openvino": _OPENVINO,
    "eager": _EXPORTED.format(wrap="", path="{path!r}", threads="{threads}"),
    "inductor": _EXPORTED.format(wrap="torch.compile", path="{path!r}", threads="{threads}"),
    "aoti": _PACKAGE,
}


def opening_code(run: TargetRun, path: str, *, warnings: Sequence[Warning], threads: int) -> str:
    """A program that opens the artifact at ``path``; empty for a target without a short one.

    The options without which the artifact computes otherwise than measured are those that the warnings name.
    """
    code = _CODE.get(run.target)
    if code is None or not (run.artifact and "." in run.artifact.rpartition("/")[2]):
        return ""
    needed = [one.what for one in warnings if one.code == "artifact-options"]
    options = "".join(f"{found}, " for what in needed for found in _OPTION.findall(what))
    notes = "".join(f"# {what}.\n" for what in needed)
    return f"{notes}{code.format(path=path, threads=threads, options=options)}\n"
