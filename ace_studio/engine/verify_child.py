"""The fresh process that proves a saved artifact: opens it, runs it, compares, and writes its answer to a file."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import torch
from safetensors.torch import load_file
from torch import Tensor

from ace_studio.engine.export import VerifyOrder
from ace_studio.engine.quantize.fidelity import sqnr_db
from ace_studio.engine.targets import TARGETS


def main(folder_name: str) -> int:
    """Read ``order.json``, do it, write ``answer.json``; 0 if an answer was written.

    Anything that the target's library raises is the answer, in words.
    """
    folder = Path(folder_name)
    order = msgspec.json.decode((folder / "order.json").read_bytes(), type=VerifyOrder)
    torch.set_num_threads(order.threads)
    try:
        answer: dict[str, object] = {"sqnr_db": _compare(folder, order)}
    except Exception as error:  # noqa: BLE001 - border: a runtime's own errors become the verdict
        import traceback  # noqa: PLC0415 - only needed when something failed

        traceback.print_exc()
        answer = {"problem": f"{type(error).__name__}: {error}"}
    (folder / "answer.json").write_text(json.dumps(answer), encoding="utf-8")
    return 0


def _compare(folder: Path, order: VerifyOrder) -> float:
    run = TARGETS[order.target].load(Path(order.path), threads=order.threads)
    inputs = _read_flat(folder / "inputs.safetensors", order.examples)
    outputs = _read_flat(folder / "outputs.safetensors", order.examples)
    worst = 200.0
    with torch.no_grad():
        for flat, expected in zip(inputs, outputs, strict=True):
            given = run(*(leaf.to(order.device) for leaf in flat))
            flat_given = [given] if isinstance(given, Tensor) else list(given)
            got = [flat_given[place].cpu() for place in order.places]
            if [tuple(one.shape) for one in got] != [tuple(one.shape) for one in expected]:
                raise ValueError(f"outputs have shapes {[tuple(one.shape) for one in got]}")
            worst = min(worst, sqnr_db(expected, got))
    return worst


def _read_flat(path: Path, examples: int) -> list[list[Tensor]]:
    stored = load_file(path)
    flat: list[list[Tensor]] = []
    for index in range(examples):
        leaves = sorted(int(name.partition(".")[2]) for name in stored if name.startswith(f"{index}."))
        flat.append([stored[f"{index}.{leaf}"] for leaf in leaves])
    return flat
