"""The fresh process that proves a saved artifact: opens it, runs it, compares, and writes its answer to a file."""

from __future__ import annotations

import contextlib
import gc
import json
import sys
from pathlib import Path

import msgspec
import psutil
import torch
from torch import Tensor

from ace_studio.engine.examples.stored_calls import read_tensors, stored_example
from ace_studio.engine.export import ModelSource, VerifyOrder
from ace_studio.engine.flow import LoadedModel, tensor_leaves
from ace_studio.engine.load import load_model
from ace_studio.engine.load.import_gate import install_gate
from ace_studio.engine.load.sniff import checked_sha256
from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.fidelity import sqnr_db
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
        memory = PeakMemory()
        answer: dict[str, object] = {"sqnr_db": _compare(folder, order, memory), "peak_bytes": memory.grown_bytes()}
    except Exception as error:  # noqa: BLE001 - border: a runtime's own errors become the verdict
        import traceback  # noqa: PLC0415 - only needed when something failed

        traceback.print_exc()
        answer = {"problem": f"{type(error).__name__}: {error}"}
    (folder / "answer.json").write_text(json.dumps(answer), encoding="utf-8")
    return 0


def _compare(folder: Path, order: VerifyOrder, memory: PeakMemory) -> float:
    if order.model is not None:
        return _compare_subgraphs(folder, order, order.model, memory)
    if order.registers is not None:
        _load_users_module(order.registers)
    memory.start()
    run = TARGETS[order.target].load(Path(order.path), threads=order.threads)
    inputs = read_tensors(folder / "inputs.safetensors", order.examples)
    outputs = read_tensors(folder / "outputs.safetensors", order.examples)
    worst = 200.0
    memory.reset_peak()
    with torch.no_grad():
        for flat, expected in zip(inputs, outputs, strict=True):
            given = run(*(leaf.to(order.device) for leaf in flat))
            flat_given = [given] if isinstance(given, Tensor) else list(given)
            got = [flat_given[place].cpu() for place in order.places]
            if [tuple(one.shape) for one in got] != [tuple(one.shape) for one in expected]:
                raise ValueError(f"outputs have shapes {[tuple(one.shape) for one in got]}")
            worst = min(worst, sqnr_db(expected, got))
    return worst


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


def _compare_subgraphs(folder: Path, order: VerifyOrder, model: ModelSource, memory: PeakMemory) -> float:
    """Build the user's module, and insert the subgraphs with the code that was saved beside them."""
    memory.start()
    sys.path.extend(one for one in order.sys_path if one not in sys.path)
    loaded = _load_users_module(model)
    sys.path.insert(0, order.path)
    from run_pieces import load  # type: ignore[import-not-found]  # noqa: PLC0415 - the copy in the artifact

    runner = load(loaded.module, order.path, threads=order.threads)
    inputs = read_tensors(folder / "inputs.safetensors", order.examples)
    outputs = read_tensors(folder / "outputs.safetensors", order.examples)
    memory.reset_peak()
    worst = 200.0
    for call, flat, expected in zip(order.calls, inputs, outputs, strict=True):
        got = [leaf.detach().cpu() for leaf in tensor_leaves(stored_example(call, flat).call(runner))]
        if [tuple(one.shape) for one in got] != [tuple(one.shape) for one in expected]:
            raise ValueError(f"outputs have shapes {[tuple(one.shape) for one in got]}")
        worst = min(worst, sqnr_db(expected, got))
    return worst


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
