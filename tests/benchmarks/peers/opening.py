"""What every tool leaves on disk, and how its user opens that: a function of flat tensors, as thin as the tool allows.

Ours is opened as thinly as the others are: by the target's ``load``, without the module around it.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from ace_studio.engine.load.torchvision.ops import make_importable
from ace_studio.engine.targets import TARGETS
from tests.benchmarks.model_files import load_file

Inputs = tuple[Tensor, ...]
Run = Callable[..., Sequence[Tensor]]


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool left on disk."""

    kind: str
    """A name in `KINDS`."""
    path: str


class Lineup(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is timed together; ``lineup.json`` of a folder, with the inputs in ``calls.pt`` beside it."""

    tools: dict[str, Left]
    model_file: str = ""
    """A file with classes that a pickled module needs."""


LINEUP_FILE = "lineup.json"
CALLS_FILE = "calls.pt"


def write_lineup(folder: Path, tools: dict[str, Left], *, first: Inputs, timed: Inputs, model_file: str = "") -> None:
    """Write what `read_lineup` reads."""
    (folder / LINEUP_FILE).write_bytes(msgspec.json.encode(Lineup(tools=tools, model_file=model_file)))
    torch.save([first, timed], folder / CALLS_FILE)


def read_lineup(folder: Path) -> tuple[dict[str, Left], Inputs, Inputs]:
    """The tools, the call that each is made with once when it is opened, and the call that is timed."""
    make_importable()  # a pickled module may need what imports torchvision
    lineup = msgspec.json.decode((folder / LINEUP_FILE).read_bytes(), type=Lineup)
    if lineup.model_file:
        load_file(Path(lineup.model_file))
    first, timed = torch.load(folder / CALLS_FILE, weights_only=True)  # noqa: TID251 - tensors written above
    return lineup.tools, first, timed


def open_left(left: Left, first: Inputs) -> Run:
    """Open what a tool left, and call it once: some compile only then, for the sizes that they see."""
    run = _opener(left.kind)(Path(left.path))
    run(*first)
    return run


def _opener(kind: str) -> Callable[[Path], Run]:
    if kind in KINDS:
        return KINDS[kind]
    return lambda path: _flat(TARGETS[kind].load(path, threads=1))


def _flat(load: Callable[..., Any]) -> Run:
    def run(*tensors: Tensor) -> Sequence[Tensor]:
        given = load(*tensors)
        return [given] if isinstance(given, Tensor) else given

    return run


def write_module(module: nn.Module, path: Path, *, kind: str) -> Left:
    """Leave a module as it is."""
    torch.save(module, path)
    return Left(kind=kind, path=str(path))


def eager(module: nn.Module) -> Run:
    """The module as it is."""
    return _torch_run(module)


def _torch_run(module: Callable[..., Any]) -> Run:
    def run(*tensors: Tensor) -> list[Tensor]:
        with torch.no_grad():
            return list(pytree.tree_leaves(module(*tensors)))

    return run


def _read(path: Path) -> Any:
    return torch.load(path, weights_only=False)  # noqa: TID251 - modules that this benchmark wrote


def _open_eager(path: Path) -> Run:
    return eager(_read(path))


def _open_torchao(path: Path, config: str) -> Run:
    """Quantize and compile here; a module with torchao's tensors in it cannot be pickled."""
    from torchao import quantization

    module = _read(path)
    quantization.quantize_(module, getattr(quantization, config)())
    return _torch_run(torch.compile(module))


def _open_pt2e(path: Path) -> Run:
    """Quantize and compile here."""
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

    module, inputs, shapes, calibration = _read(path)
    exported = torch.export.export(module, inputs, dynamic_shapes=shapes).module()
    quantizer = x86.X86InductorQuantizer().set_global(x86.get_default_x86_inductor_quantization_config())
    prepared = prepare_pt2e(exported, quantizer)
    for call in calibration:
        prepared(*call)
    return _torch_run(torch.compile(convert_pt2e(prepared)))


def _open_openvino(path: Path) -> Run:
    import openvino

    settings = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": 1}
    return openvino_run(openvino.Core().compile_model(str(path), "CPU", settings))


def _open_openvino_bf16(path: Path) -> Run:
    import openvino

    core = openvino.Core()
    if "BF16" not in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
        raise ValueError("this processor has no bfloat16 arithmetic")
    settings = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "bf16", "INFERENCE_NUM_THREADS": 1}
    return openvino_run(core.compile_model(str(path), "CPU", settings))


def _open_openvino_f32(path: Path) -> Run:
    """In fp32 where the model does not say otherwise; OpenVINO's own choice is bfloat16 on some processors."""
    import openvino

    core = openvino.Core()
    model = core.read_model(str(path))
    key = ["runtime_options", "INFERENCE_PRECISION_HINT"]
    hint = str(model.get_rt_info(key).astype(str)) if model.has_rt_info(key) else "f32"
    settings = {"INFERENCE_PRECISION_HINT": hint, "INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1}
    return openvino_run(core.compile_model(model, "CPU", settings))


def openvino_run(compiled: Any) -> Run:
    """A compiled model as a function of tensors."""
    request = compiled.create_infer_request()

    def run(*tensors: Tensor) -> list[Tensor]:
        found = request.infer([value.numpy() for value in tensors], share_inputs=True)  # outputs are copies
        return [torch.from_numpy(value) for value in found.values()]

    return run


def _open_onnxruntime(path: Path) -> Run:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]

    def run(*tensors: Tensor) -> list[Tensor]:
        feed = {name: value.numpy() for name, value in zip(names, tensors, strict=True)}
        return [torch.from_numpy(value) for value in session.run(None, feed)]

    return run


KINDS: dict[str, Callable[[Path], Run]] = {
    "eager module": _open_eager,
    "torchao dynamic": lambda path: _open_torchao(path, "Int8DynamicActivationInt8WeightConfig"),
    "torchao weights": lambda path: _open_torchao(path, "Int8WeightOnlyConfig"),
    "torchao PT2E": _open_pt2e,
    "bare openvino": _open_openvino,
    "bare openvino bf16": _open_openvino_bf16,
    "bare openvino f32": _open_openvino_f32,
    "bare onnxruntime": _open_onnxruntime,
}
"""How each kind of file is opened by hand; any other kind is the name of one of our targets."""
