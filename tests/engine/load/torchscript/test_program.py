"""TorchScript opens: its graph is written as Python that answers as the program does, at sizes nobody gave too."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.export import Dim

from ace_studio.engine.flow import Example, tensor_leaves
from ace_studio.engine.load import check_translation, inspect_file
from ace_studio.records.errors import AceError, ErrorCode
from tests.engine.load.samples import load, problem_of
from tests.tiny_models import conv_net, recurrent

pytestmark = pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def save(program, folder: Path) -> str:
    torch.jit.save(program, folder / "p.pt")
    return "p.pt"


def is_equal(module, program, *args) -> bool:
    with torch.no_grad():
        torch.testing.assert_close(tensor_leaves(module(*args)), tensor_leaves(program(*args)))
    return True


@pytest.mark.parametrize("make", [torch.jit.script, lambda module: torch.jit.trace(module, random(2, 3, 16, 16))])
def test_modules_paths_names_and_free_sizes_survive(tmp_path, make):
    original = conv_net().module
    program = make(original)
    module = load(tmp_path, save(program, tmp_path)).module

    assert list(module.state_dict()) == list(original.state_dict())
    assert {name: type(part).__name__ for name, part in module.named_modules() if name} == {
        name: type(part).__name__ for name, part in original.named_modules() if name
    }
    exported = torch.export.export(module, (random(2, 3, 16, 16),), dynamic_shapes=({0: Dim.DYNAMIC},))
    assert is_equal(exported.module(), program, random(5, 3, 16, 16, seed=1))
    targets = {str(node.target) for node in exported.graph.nodes}
    assert "aten.conv2d.default" in targets  # not the general convolution that a traced program has
    stacks = [str(node.meta.get("nn_module_stack")) for node in exported.graph.nodes if "conv2d" in str(node.target)]
    assert any("stem" in stack for stack in stacks)


def test_sizes_that_a_traced_program_computes_with_tensors_stay_free(tmp_path):
    class Reshape(nn.Module):
        def forward(self, x):
            n, c, h, w = x.shape
            return x.view(n, c * h, w // 2, 2).transpose(1, 2).reshape(n, -1), torch.zeros(n, h)

    program = torch.jit.trace(Reshape(), random(2, 3, 4, 6))
    module = load(tmp_path, save(program, tmp_path)).module
    dynamic = ({0: Dim.DYNAMIC, 2: Dim.DYNAMIC, 3: Dim.DYNAMIC},)
    exported = torch.export.export(module, (random(2, 3, 4, 6),), dynamic_shapes=dynamic)
    found = exported.module()(random(5, 3, 7, 8))
    assert [tuple(one.shape) for one in found] == [(5, 168), (5, 7)]


def test_a_recurrent_layer_and_a_frozen_program_open(tmp_path):
    model = recurrent()
    program = torch.jit.script(model.module)
    assert is_equal(load(tmp_path, save(program, tmp_path)).module, program, *model.examples[0])
    frozen = torch.jit.freeze(torch.jit.script(conv_net().module))
    assert is_equal(load(tmp_path, save(frozen, tmp_path)).module, frozen, random(2, 3, 16, 16))


def test_a_program_from_python_is_opened_too(tmp_path):
    (tmp_path / "m.py").write_text(
        "import torch\n"
        "def make_model():\n"
        "    return torch.jit.trace(torch.nn.Linear(2, 3), torch.zeros(1, 2)), torch.ones(1, 2)\n"
    )
    loaded = load(tmp_path, "m.py")
    assert isinstance(loaded.reference, torch.jit.ScriptModule)
    assert not isinstance(loaded.module, torch.jit.ScriptModule)
    assert len(loaded.data.examples) == 1


def test_a_compiled_part_of_a_python_module_is_written_too(tmp_path):
    (tmp_path / "m.py").write_text(
        "import torch\n"
        "class Net(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.part = torch.jit.script(torch.nn.Linear(2, 3))\n"
        "    def forward(self, x):\n"
        "        return self.part(x).relu()\n"
    )
    loaded = load(tmp_path, "m.py")
    assert not any(isinstance(part, torch.jit.ScriptModule) for part in loaded.module.modules())
    assert is_equal(loaded.module, loaded.reference, torch.ones(1, 2))
    assert len(torch.export.export(loaded.module, (torch.ones(1, 2),)).graph.nodes) > 3


def test_opening_needs_trust_and_looking_does_not(tmp_path):
    source = save(torch.jit.script(conv_net().module), tmp_path)
    assert problem_of(tmp_path, source, trusted=False).code is ErrorCode.UNTRUSTED
    report = inspect_file(tmp_path / source)
    assert (report.kind, report.trust) == ("torchscript", "code")


def test_opening_a_program_does_not_warn_that_torch_wants_no_new_ones(tmp_path):
    source = save(torch.jit.script(nn.Linear(2, 3)), tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(tmp_path, source)


def test_a_damaged_program_is_refused_before_torch_reads_it(tmp_path):
    source = save(torch.jit.script(conv_net().module), tmp_path)
    content = bytearray((tmp_path / source).read_bytes())
    place = content.find(b"ZZZZ")  # padding in front of the tensors
    content[place + 70] ^= 0xFF
    (tmp_path / source).write_bytes(bytes(content))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            loaded = load(tmp_path, source)
        except AceError as error:
            assert error.problem.code is ErrorCode.BAD_FILE
        else:
            assert loaded.module is not None  # the byte was padding after all
    (tmp_path / source).write_bytes(bytes(content[:-200]))
    assert problem_of(tmp_path, source).code is ErrorCode.BAD_FILE


def test_python_that_differs_from_its_program_is_noticed(tmp_path):
    loaded = load(tmp_path, save(torch.jit.script(nn.Linear(2, 3)), tmp_path))
    example = Example.of(torch.ones(1, 2))
    with torch.no_grad():
        check_translation(loaded, [example])
        loaded.module.bias = nn.Parameter(loaded.module.bias + 1)
        with pytest.raises(AceError) as caught:
            check_translation(loaded, [example])
    assert caught.value.problem.code is ErrorCode.NOT_CAPTURED
    with pytest.raises(AceError) as caught:
        check_translation(loaded, [Example.of(torch.ones(1, 5))])
    assert "does not run on example 1" in caught.value.problem.what
