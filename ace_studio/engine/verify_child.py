"""The fresh process that proves a saved artifact: opens it, runs it, compares, and writes its answer to a file."""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import psutil
import torch
from torch import Tensor

from ace_studio.engine.examples.stored_calls import read_tensors, stored_example
from ace_studio.engine.export import ModelSource, VerifyOrder
from ace_studio.engine.flow import LoadedModel, pooled_outputs, tensor_leaves
from ace_studio.engine.load import load_model
from ace_studio.engine.load.import_gate import install_gate
from ace_studio.engine.load.sniff import checked_sha256
from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.fidelity import measured_sqnr_db
from ace_studio.engine.subgraphs import run_pieces
from ace_studio.engine.targets import TARGETS


def verify(folder_name: str) -> int:
    """Carry out ``order.json`` and write ``answer.json``; 0 if an answer was written.

    Anything that the target's library raises is the answer, in words.
    """
    folder = Path(folder_name)
    order = msgspec.json.decode((folder / "order.json").read_bytes(), type=VerifyOrder)
    torch.set_num_threads(order.threads)
    install_gate()
    try:
        for name in order.imports:
            importlib.import_module(name)
        memory = PeakMemory()
        answer: dict[str, object] = {"sqnr_db": _compare(folder, order, memory), "peak_bytes": memory.grown_bytes()}
    except Exception as error:  # noqa: BLE001 - border: a runtime's own errors become the verdict
        import traceback  # noqa: PLC0415 - only needed when something failed

        traceback.print_exc()
        answer = {"problem": f"{type(error).__name__}: {error}"}
    (folder / "answer.json").write_text(json.dumps(answer), encoding="utf-8")
    return 0


def _compare(folder: Path, order: VerifyOrder, memory: PeakMemory) -> float:
    run = _open_artifact(order, memory) if order.model is None else _open_subgraphs(order, order.model, memory)
    inputs = read_tensors(folder / "inputs.safetensors", order.examples)
    outputs = read_tensors(folder / "outputs.safetensors", order.examples)
    memory.reset_peak()
    results = []
    with torch.no_grad():
        for index, (flat, expected) in enumerate(zip(inputs, outputs, strict=True)):
            given = run(index, [leaf.to(order.device) for leaf in flat])
            got = [leaf.detach().cpu().clone() for leaf in given]  # the next call may write into the same memory
            if [tuple(one.shape) for one in got] != [tuple(one.shape) for one in expected]:
                raise ValueError(f"outputs have shapes {[tuple(one.shape) for one in got]}")
            results.append(got)
    return measured_sqnr_db(pooled_outputs(outputs), pooled_outputs(results))


_Run = Callable[[int, Sequence[Tensor]], Sequence[Tensor]]
"""(number of the example, its tensors) -> the tensors that are compared."""


def _open_artifact(order: VerifyOrder, memory: PeakMemory) -> _Run:
    if order.registers is not None:
        _load_users_module(order.registers)
    memory.start()
    function = TARGETS[order.target].load(Path(order.path), threads=order.threads)

    def run(_: int, tensors: Sequence[Tensor]) -> list[Tensor]:
        given = function(*tensors)
        flat = [given] if isinstance(given, Tensor) else list(given)
        return [flat[place] for place in order.places]

    return run


def _open_subgraphs(order: VerifyOrder, model: ModelSource, memory: PeakMemory) -> _Run:
    """Build the user's module, and insert the subgraphs with the code that was saved beside them."""
    memory.start()
    sys.path.extend(one for one in order.sys_path if one not in sys.path)
    loaded = _load_users_module(model)
    sys.path.insert(0, order.path)
    from run_pieces import load  # type: ignore[import-not-found]  # noqa: PLC0415 - the copy in the artifact

    runner = load(loaded.module.to(order.device), order.path, threads=order.threads)
    return lambda index, tensors: tensor_leaves(stored_example(order.calls[index], tensors).call(runner))


def _load_users_module(model: ModelSource) -> LoadedModel:
    """The user's module. Only code that ran in the job that gave the order runs here.

    Raises: AceError(UNTRUSTED) if a file has changed since.
    """
    allowed = None if model.code is None else {*model.code, checked_sha256(Path(run_pieces.__file__))}
    with contextlib.chdir(model.folder):
        return load_model(
            model.recipe,
            Path(model.folder),
            is_trusted=lambda sha256: allowed is None or sha256 in allowed,
            reporter=Reporter(),
        )


_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_RESET_PEAK = "5"
"""Written to clear_refs, it resets the peak to the current size (proc_pid_clear_refs(5))."""


class PeakMemory:
    """The peak of the resident memory since `start`, minus the size at that time. Linux only; None elsewhere.

    `reset_peak` forgets what was needed only on the way, such as the compiler's own memory.
    """

    def __init__(self) -> None:
        self._before_bytes: int | None = None

    def start(self) -> None:
        """Note the current size."""
        gc.collect()
        self._before_bytes = psutil.Process().memory_info().rss
        self.reset_peak()

    def reset_peak(self) -> None:
        """Reset the peak to the current size."""
        gc.collect()
        try:
            _CLEAR.write_text(_RESET_PEAK, encoding="ascii")
        except OSError:
            self._before_bytes = None

    def grown_bytes(self) -> int | None:
        """Peak since the last reset minus the size at the start, in bytes; None if the system does not tell."""
        if self._before_bytes is None:
            return None
        for line in _STATUS.read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return max(0, int(line.split()[1]) * 1024 - self._before_bytes)
        return None
