"""Writes that other values see become functional ops with their captured ids; other graphs stay as they are."""

import warnings

import pytest
import torch
from torch import nn

from ace_studio.engine.quantize.flat_graph import flat_graph, op_ids
from ace_studio.engine.torch_private.exporting import export_program
from ace_studio.engine.torch_private.functional import without_shared_writes, written_buffers
from ace_studio.engine.torch_private.operators import writes_in_place


class Layers(nn.Module):
    """Layers with a write in place between them; x [n, 8]."""

    def __init__(self, write):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Linear(8, 8)
        self.write = write
        self.norm.running_mean += 0.5

    def forward(self, x):
        return self.last(self.norm(self.write(self.first(x))))


def view(hidden):
    hidden.view(-1, 4).add_(1.0)
    return hidden


def slices(hidden):
    hidden[:, :4] += 1.0
    hidden[:, 4:].mul_(2.0)
    return hidden


def chunks(hidden):
    hidden.chunk(2, dim=1)[1].zero_()
    return hidden


def element(hidden):
    torch.relu_(hidden)
    hidden[:, 0] = 5.0
    return hidden


def whole(hidden):
    return hidden.relu_() + 1.0


def last_name(hidden):
    hidden = hidden.view(-1, 8)
    hidden += 1.0
    return hidden


def program_of(write):
    torch.manual_seed(0)
    module, x = Layers(write).eval(), torch.randn(5, 8)
    with torch.no_grad():
        dims = ({0: torch.export.Dim.AUTO},)
        return export_program(module, (x,), {}, dynamic_shapes=dims, strict=False), module(x), x


@pytest.mark.parametrize("write", [view, slices, chunks, element])
def test_a_write_that_is_read_through_another_value_becomes_functional(write):
    program, expected, x = program_of(write)
    graph = flat_graph(program)
    assert not any(writes_in_place(node.target) for node in graph.graph.nodes)
    torch.testing.assert_close(graph(x)[0], expected)
    written = {node.name for node in program.graph.nodes if writes_in_place(node.target)}
    ids = op_ids(graph)
    assert written | {"linear", "batch_norm", "linear_1"} <= set(ids.values())
    assert len(set(ids.values())) == len(ids)
    targets = {ids[node.name]: str(node.target) for node in graph.graph.nodes if node.name in ids}
    assert targets["batch_norm"] == "aten.batch_norm.default"
    assert all("custom" not in node.meta or "ace_name" not in node.meta["custom"] for node in program.graph.nodes)


@pytest.mark.parametrize("write", [whole, last_name])
def test_a_write_that_nothing_else_sees_stays(write):
    program, _, _ = program_of(write)
    same, ids = without_shared_writes(program)
    assert same is program and all(name == origin for name, origin in ids.items())


class Items(nn.Module):
    """Writes into results of ops that give several new values; x [n, length, 8]."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(8, 8, batch_first=True)

    def forward(self, x):
        hidden, state = self.lstm(x)
        largest, places = hidden.max(dim=2)
        largest.add_(1.0)
        hidden.mul_(2.0)
        return hidden, largest, places, state


def test_results_of_one_op_share_no_memory():
    with warnings.catch_warnings(action="ignore"):  # the list of weights in the LSTM
        program = export_program(Items().eval(), (torch.randn(2, 5, 8),), {}, dynamic_shapes=None, strict=False)
    assert without_shared_writes(program)[0] is program


class Outputs(nn.Module):
    """A written value and batch norms of it, one used by an op with two results; x [n, 8]."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(8)
        self.norm.running_mean += 0.5

    def forward(self, x):
        hidden = x * 2.0
        hidden[:, 0] = 5.0
        return self.norm(hidden), hidden, self.norm(hidden + 1.0).max(dim=1)


def test_batch_norms_that_are_outputs_have_their_captured_form():
    module, x = Outputs().eval(), torch.randn(5, 8)
    program = export_program(module, (x,), {}, dynamic_shapes=None, strict=False)
    before = [node.meta.get("custom") for node in program.graph.nodes]
    graph = flat_graph(program)
    norms = graph.graph.find_nodes(op="call_function", target=torch.ops.aten.batch_norm.default)
    originals = program.graph.find_nodes(op="call_function", target=torch.ops.aten.batch_norm.default)
    assert [norm.args[5:8] for norm in norms] == [norm.args[5:8] for norm in originals]
    normed, hidden, largest = module(x)
    torch.testing.assert_close(graph(x), (normed, hidden, *largest))
    torch.testing.assert_close(without_shared_writes(program)[0].module()(x), (normed, hidden, largest))
    assert [node.meta.get("custom") for node in program.graph.nodes] == before


class Keeps(nn.Module):
    """Buffers that forward writes into by itself, through a view, or only as a copy; x [n, 4]."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("rows", torch.zeros(3, 4))
        self.register_buffer("flat", torch.zeros(3, 4), persistent=False)
        self.register_buffer("turned", torch.ones(4, 3))
        self.register_buffer("table", torch.ones(4))

    def forward(self, x):
        self.count += 1
        self.rows[:, 1:] = x[:3, 1:]
        self.flat.view(-1).add_(1)
        own = self.turned.t().contiguous().mul_(2) + self.table.to(torch.float64).add_(1)
        return x[:3] * self.count + self.rows + self.flat + own


def test_the_buffers_that_a_graph_writes_into_are_found():
    program = export_program(Keeps().eval(), (torch.randn(5, 4),), {}, dynamic_shapes=None, strict=False)
    assert written_buffers(program) == ("count", "flat", "rows")
    with warnings.catch_warnings(action="ignore"):  # torch uses what it has deprecated
        program = program.run_decompositions({})
    assert written_buffers(program) == ("count", "flat", "rows")
