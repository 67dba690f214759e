"""A captured model on disk, with weights and examples, so that another process can lower it.

Names of nodes are the ids of ops, so what is read must be what was written, node by node; a digest proves it.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from ace_studio.engine.capture.output import captured_output
from ace_studio.engine.examples import stored_calls
from ace_studio.engine.flow import CapturedModel, Example
from ace_studio.engine.torch_private.operators import foreign_operators
from ace_studio.engine.torch_private.stored import program_from_json, program_to_json, reading_of
from ace_studio.records.graph import GraphTable
from ace_studio.records.tensors import InputFinding

_ABOUT, _GRAPH, _WEIGHTS, _CALLS = "about.msgpack", "graph.json", "weights.safetensors", "calls.safetensors"


class StoredCapture(msgspec.Struct, frozen=True, kw_only=True):
    """The file beside the graph and the tensors."""

    table: GraphTable
    inputs: tuple[InputFinding, ...]
    fingerprint: str
    calls: tuple[stored_calls.StoredCall, ...]
    """The traced example, then the verified ones, then the calibration examples."""
    examples: int
    """How many of the calls after the first are the verified ones."""
    unseen: int
    """How many of the verified ones, at the end, have made-up sizes."""
    state: dict[str, str]
    """Name of a parameter or buffer -> name of the tensor in the file; tied ones share it."""
    constants: dict[str, str]
    parameters: tuple[str, ...]
    reading: str


def store_capture(captured: CapturedModel, calibration: Sequence[Example], folder: Path) -> None:
    """Write a capture with its calibration examples into ``folder``, which exists.

    Raises: CannotLeaveError if it cannot be had in another process, saying why.
    """
    program = captured.program
    if names := foreign_operators(program):
        raise stored_calls.CannotLeaveError(f"it calls {names[0]}, which the model's code registers")
    tensors = _Tensors()
    state, constants = tensors.names_for(program.state_dict), tensors.names_for(program.constants)
    calls = (captured.example, *captured.examples, *calibration)
    about = StoredCapture(
        table=captured.table,
        inputs=captured.inputs,
        fingerprint=captured.fingerprint,
        calls=tuple(stored_calls.store_call(call) for call in calls),
        examples=len(captured.examples),
        unseen=len(captured.unseen),
        state=state,
        constants=constants,
        parameters=tuple(name for name, value in program.state_dict.items() if isinstance(value, nn.Parameter)),
        reading=reading_of(program),
    )
    try:
        (folder / _GRAPH).write_bytes(program_to_json(program))
        save_file(tensors.by_name, folder / _WEIGHTS)
        stored_calls.write_tensors(folder / _CALLS, [call.tensors() for call in calls])
    except OSError:
        raise
    except Exception as error:  # torch and the user's containers raise anything here
        raise stored_calls.CannotLeaveError("its graph or its tensors cannot be written to a file") from error
    (folder / _ABOUT).write_bytes(msgspec.msgpack.encode(about))


def read_capture(folder: Path) -> tuple[CapturedModel, list[Example]]:
    """The capture and the calibration examples that `store_capture` wrote; the capture has no module.

    Raises: ValueError if it is not the one that was written; whatever torch does for what is damaged.
    """
    about = msgspec.msgpack.decode((folder / _ABOUT).read_bytes(), type=StoredCapture)
    flat = stored_calls.read_tensors(folder / _CALLS, len(about.calls))
    tracing, *calls = [
        stored_calls.stored_example(call, tensors) for call, tensors in zip(about.calls, flat, strict=True)
    ]
    tensors = load_file(folder / _WEIGHTS)
    graph = (folder / _GRAPH).read_bytes()
    with captured_output():
        program = program_from_json(
            graph,
            state={name: _as_it_was(tensors[stored], name in about.parameters) for name, stored in about.state.items()},
            constants={name: tensors[stored] for name, stored in about.constants.items()},
            example=(tracing.args, dict(tracing.kwargs)),
        )
    if reading_of(program) != about.reading:
        raise ValueError("the graph reads otherwise than it was written")
    examples = tuple(calls[: about.examples])
    captured = CapturedModel(
        program=program,
        table=about.table,
        inputs=about.inputs,
        example=tracing,
        examples=examples,
        unseen=examples[len(examples) - about.unseen :],
        module=nn.Module(),  # only the graph is lowered
        device=torch.device("cpu"),
        fingerprint=about.fingerprint,
    )
    return captured, calls[about.examples :]


def _as_it_was(tensor: Tensor, is_parameter: bool) -> Tensor:
    return nn.Parameter(tensor, requires_grad=False) if is_parameter else tensor


class _Tensors:
    """The tensors of a file; tied tensors are stored once.

    Targets store a weight once that two layers share, and know it by its memory.
    """

    def __init__(self) -> None:
        self.by_name: dict[str, Tensor] = {}
        self._names: dict[tuple[object, ...], str] = {}

    def names_for(self, tensors: Mapping[str, object]) -> dict[str, str]:
        """Name -> name in the file. Raises: CannotLeaveError for what is no plain tensor."""
        return {name: self._name_for(name, value) for name, value in tensors.items()}

    def _name_for(self, name: str, value: object) -> str:
        if type(value) not in {Tensor, nn.Parameter} or not isinstance(value, Tensor):
            raise stored_calls.CannotLeaveError(f"{name} is no plain tensor")
        memory = (value.data_ptr(), value.dtype, value.shape, value.stride())
        if value.numel() and memory in self._names:
            return self._names[memory]
        stored = f"{len(self.by_name)}"
        self._names[memory] = stored
        self.by_name[stored] = value.detach().clone(memory_format=torch.contiguous_format)
        return stored
