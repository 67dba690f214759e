"""The capture methods, each alone on every kind of model, and where export gives up."""

from __future__ import annotations

import contextlib
import math
import time

import pytest
import torch
from torch import Tensor, nn
from torch.func import grad, vmap

from ace_studio.engine.capture.verify import difference
from ace_studio.engine.flow import Example
from ace_studio.records.errors import AceError
from ace_studio.records.recipes.recipe import CaptureChoice, Recipe
from ace_studio.records.results import AttemptStatus
from tests import tiny_models
from tests.engine.capture.captures import HoldsScript, KeptCaptures, capture, capture_by, dims

NOT_FOR_FX = {("fx", "text_model")}
CONTAINED = {"conv_net"}
"""What another model has too: ``conv_net_any_size`` is this one with more free sizes."""
ALONE = [
    pytest.param(rung, name, marks=[pytest.mark.full] * (name in CONTAINED))
    for rung in ("dynamo", "fx")
    for name in tiny_models.EASY
    if (rung, name) not in NOT_FOR_FX
]


@pytest.mark.parametrize(("rung", "name"), ALONE)
def test_a_method_alone_gives_the_same_findings_table_and_results_as_export(
    kept: KeptCaptures, rung: str, name: str
) -> None:
    plain, _ = kept.of(name)
    captured, report = kept.of(name, rung)
    assert report.rung == rung
    assert [[dim.verdict for dim in one.dims] for one in captured.inputs] == [
        [dim.verdict for dim in one.dims] for one in plain.inputs
    ]
    assert [(dim.symbol, dim.min, dim.max) for dim in dims(captured).values()] == [
        (dim.symbol, dim.min, dim.max) for dim in dims(plain).values()
    ]
    assert captured.unseen
    assert set(captured.program.state_dict) == set(plain.program.state_dict)
    assert set(captured.table.module) == set(plain.table.module)
    assert set(captured.table.files) == set(plain.table.files)
    graph = captured.program.module()
    with torch.no_grad():
        for example in captured.examples:
            assert not difference(example.call(captured.module), example.call(graph))


class ScaledAndTimed(nn.Module):
    """What the first rung cannot do on one line, and what the others cannot do on the next."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        started = time.perf_counter()
        y = self.linear(x) / math.sqrt(len(x))
        assert time.perf_counter() >= started
        return y


class Unpacks(nn.Module):
    """Sizes in plain Python mathematics, and a generator."""

    def __init__(self) -> None:
        super().__init__()
        self.scripted = HoldsScript()

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        return {"y": self.scripted(x).relu(), "scaled": x * math.ceil(math.sqrt(x.shape[0]))}


@pytest.mark.parametrize(
    ("module", "rungs"), [(ScaledAndTimed(), {"dynamo", "fx"}), (HoldsScript(), {"dynamo", "fx"}), (Unpacks(), {"fx"})]
)
def test_models_that_export_refuses_are_captured_with_a_free_batch(module: nn.Module, rungs: set[str]) -> None:
    captured, report = capture(module, [(torch.randn(2, 4),), (torch.randn(5, 4),)])
    status = {one.name: one.status for one in report.rungs}
    assert status["export"] is not AttemptStatus.OK
    assert status["export-strict"] is not AttemptStatus.OK
    assert report.rung in rungs
    assert dims(captured)["x.0"].symbol == "s0"
    graph = captured.program.module()
    with torch.no_grad():
        other = Example((torch.randn(17, 4),))
        assert not difference(other.call(module.eval()), other.call(graph))


@pytest.mark.parametrize("rung", ["dynamo", "fx"])
def test_a_branch_on_a_size_is_not_lost_on_the_way(rung: str) -> None:
    module = tiny_models.size_specialised().module
    examples = [(torch.ones(2, 5, 4),), (torch.ones(2, 8, 4),)]
    if rung == "fx":
        with pytest.raises(AceError, match="decides by something that depends on its input"):
            capture_by(rung, module, examples)
        return
    captured, _ = capture_by(rung, module, examples)
    assert "not valid at 3" in dims(captured)["x.1"].reason


class Forces(nn.Module):
    """Gradients of an energy, one for each row."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def energy(self, row: Tensor) -> Tensor:
        return torch.tanh(self.layer(row)).square().sum()

    def forward(self, x: Tensor) -> Tensor:
        return vmap(grad(self.energy))(x)


def test_gradients_of_every_row_are_captured_whole_for_any_number_of_rows() -> None:
    module = Forces().eval()
    captured, report = capture(module, [torch.randn(2, 4), torch.randn(3, 4)])
    assert report.rung == "export"
    x = torch.randn(7, 4)
    torch.testing.assert_close(captured.program.module()(x), module(x))
    assert {"layer.weight", "layer.bias"} == set(captured.program.state_dict)


class EnergyAndForces(nn.Module):
    """What force fields do: the forces are the negative gradient of the energy by the positions."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden, self.last = nn.Linear(3, 8), nn.Linear(8, 1)

    @torch.enable_grad()
    def forward(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        positions.requires_grad_(True)
        energy = self.last(torch.tanh(self.hidden(positions))).sum((1, 2))
        return energy, -torch.autograd.grad(energy.sum(), positions)[0]


class EnergyWithoutGradMode(EnergyAndForces):
    def forward(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        return EnergyAndForces.forward.__wrapped__(self, positions)


def test_a_gradient_by_an_input_is_captured_whole_for_any_sizes() -> None:
    module = EnergyAndForces().eval()
    captured, report = capture(module, [torch.randn(2, 4, 3), torch.randn(3, 5, 3)])
    assert report.rung == "export"
    found, expected = captured.program.module()(torch.ones(6, 9, 3)), module(torch.ones(6, 9, 3))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other.detach())


def test_a_forward_that_needs_gradients_but_does_not_enable_them_is_told_how_to() -> None:
    with pytest.raises(AceError, match=r"@torch\.enable_grad\(\)"):
        capture(EnergyWithoutGradMode().eval(), [torch.randn(2, 4, 3)])


def test_a_trace_that_fails_inside_vmap_leaves_nothing_of_it_behind() -> None:
    with contextlib.suppress(AceError):  # torch 2.13 follows it by none of these methods, 2.11 by one
        capture(
            Forces().eval(),
            [torch.randn(2, 4), torch.randn(3, 4)],
            Recipe(capture=CaptureChoice(rungs=("export-strict", "dynamo", "fx"))),
        )
    assert torch.randn(2).shape == (2,)
