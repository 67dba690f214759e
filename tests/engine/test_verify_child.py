"""What a saved artifact gives is compared with what was expected; the peak of memory over what was held before."""

import gc
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from ace_studio.engine import verify_child
from ace_studio.engine.examples.stored_calls import store_call, write_tensors
from ace_studio.engine.export import ModelSource, VerifyOrder
from ace_studio.engine.flow import Example
from ace_studio.engine.load.sniff import checked_sha256
from ace_studio.engine.verify_child import PeakMemory
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.recipe import ModelChoice, Recipe


@pytest.fixture(autouse=True)
def other_tests_garbage():
    """`PeakMemory` collects garbage, which takes seconds among what hundreds of tests have left."""
    gc.freeze()


on_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the peak since a moment")
LARGE_BYTES = 200_000_000


@on_linux
def test_the_peak_is_what_was_held_at_most_since_the_start():
    memory = PeakMemory()
    assert memory.grown_bytes() is None
    memory.start()
    held = np.ones(LARGE_BYTES // 8)
    held.sum()
    del held
    assert LARGE_BYTES * 0.9 < memory.grown_bytes() < LARGE_BYTES * 1.5


@on_linux
def test_what_was_needed_only_on_the_way_can_be_forgotten():
    memory = PeakMemory()
    memory.start()
    np.ones(LARGE_BYTES // 8).sum()
    memory.reset_peak()
    assert memory.grown_bytes() < LARGE_BYTES * 0.5


def order_for(folder: Path, inputs: list[Tensor], expected: list[list[Tensor]], **more: object) -> VerifyOrder:
    write_tensors(folder / "inputs.safetensors", [[one] for one in inputs])
    write_tensors(folder / "outputs.safetensors", expected)
    given = {"target": "toy", "path": str(folder), "places": (0, 1), "threads": 1, "device": "cpu", **more}
    return VerifyOrder(examples=len(inputs), **given)


def test_all_examples_together_decide_and_indices_beside_real_numbers_do_not(tmp_path, monkeypatch):
    def indexed(x):
        return [x, torch.arange(len(x))]

    def near(x):  # two scores that nearly tie changed places
        return [x + 1e-3, torch.arange(len(x)).flip(0)]

    monkeypatch.setattr(verify_child, "TARGETS", {"toy": SimpleNamespace(load=lambda path, threads: near)})
    inputs = [torch.ones(4), torch.full((4,), 1e-3)]  # of which one alone has nearly no signal
    order = order_for(tmp_path, inputs, [indexed(one) for one in inputs])
    assert verify_child._compare(tmp_path, order, PeakMemory()) > 50.0


def test_subgraphs_are_loaded_and_called_on_the_device_of_the_job(tmp_path, monkeypatch):
    (tmp_path / "run_pieces.py").write_text(
        "import torch\n"
        "def load(module, folder, *, threads):\n"
        "    def run(x):\n"
        "        return torch.tensor([float(x.is_meta), float(module.weight.is_meta)])\n"
        "    return run\n",
        encoding="utf-8",
    )
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(verify_child, "_load_users_module", lambda model: SimpleNamespace(module=nn.Linear(2, 2)))
    x = torch.ones(2)
    order = order_for(
        tmp_path,
        [x],
        [[torch.ones(2)]],
        device="meta",
        model=ModelSource(recipe=Recipe(), folder=str(tmp_path)),
        calls=(store_call(Example((x,))),),
    )
    try:
        assert verify_child._compare(tmp_path, order, PeakMemory()) == 200.0
    finally:
        sys.modules.pop("run_pieces", None)


def test_code_that_was_changed_since_the_job_ran_it_does_not_run(tmp_path):
    code = tmp_path / "net.py"
    code.write_text("from torch import nn\n\n\ndef make_model():\n    return nn.ReLU()\n", encoding="utf-8")
    recipe = Recipe(model=ModelChoice(source="net.py", entry="make_model"))
    source = ModelSource(recipe=recipe, folder=str(tmp_path), code=(checked_sha256(code),))
    assert isinstance(verify_child._load_users_module(source).module, nn.ReLU)
    code.write_text("raise SystemExit('the changed code ran')\n", encoding="utf-8")
    with pytest.raises(AceError) as caught:
        verify_child._load_users_module(source)
    assert caught.value.problem.code is ErrorCode.UNTRUSTED
