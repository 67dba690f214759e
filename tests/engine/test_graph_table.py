"""The captured graph as a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim

from ace_studio.engine.graph_table import build_graph_table
from ace_studio.records.graph import GraphTable, OpKind
from tests import tiny_models


def table_of(module: nn.Module, args: tuple[Any, ...], dynamic: Any = None, *, strict: bool = False) -> GraphTable:
    with torch.no_grad():
        program = torch.export.export(module, args, dynamic_shapes=dynamic, strict=strict)
    return build_graph_table(program, module=module)


@pytest.fixture(scope="module", params=[False, True], ids=["export", "strict"])
def conv(request: pytest.FixtureRequest) -> GraphTable:
    tiny = tiny_models.conv_net()
    return table_of(tiny.module, tiny.examples[1], ({0: Dim.DYNAMIC},), strict=request.param)


def row_of(table: GraphTable, op: str, number: int = 0) -> int:
    return [row for row in range(len(table)) if table.op[row] == op][number]


def test_rows_read_only_rows_before_them_and_all_but_inputs_read_something(conv: GraphTable) -> None:
    assert all(source < target for source, target in zip(conv.edge_source, conv.edge_target, strict=True))
    assert {row for row in range(len(conv)) if conv.kind[row] is not OpKind.INPUT} == set(conv.edge_target)


def test_weights_are_bytes_at_the_op_that_reads_them_and_no_rows(conv: GraphTable) -> None:
    assert [conv.op_id[row] for row in range(len(conv)) if conv.kind[row] is OpKind.INPUT] == ["x"]
    first = row_of(conv, "aten.conv2d.default")
    assert conv.weight_bytes[first] == 8 * 3 * 3 * 3 * 4
    assert sum(conv.weight_bytes) == sum(
        tensor.numel() * tensor.element_size()
        for name, tensor in tiny_models.conv_net().module.state_dict().items()
        if "num_batches" not in name
    )


def test_arguments_without_tensors_and_names_of_weights_are_kept_in_words(conv: GraphTable) -> None:
    first = row_of(conv, "aten.conv2d.default")
    weights = conv.weights[first].splitlines()
    assert [line.split()[1:] for line in weights] == [["8x3x3x3", "float32"], ["8", "float32"]][: len(weights)]
    assert all(line.split()[0] in tiny_models.conv_net().module.state_dict() for line in weights)
    assert "stride = " in conv.attributes[first] or "padding = " in conv.attributes[first]
    assert conv.attributes[0] == conv.weights[0] == ""


def test_modules_lines_shapes_and_types_are_those_of_the_code(conv: GraphTable) -> None:
    row = row_of(conv, "aten.conv2d.default", 2)
    assert conv.module[row] == "blocks.1.conv"
    assert conv.shape[row] == "s0x8x16x16"
    assert conv.dtype[row] == "float32"
    assert conv.device[row] == "cpu"
    assert conv.output_bytes[row] == 4 * 8 * 16 * 16 * 4
    assert Path(conv.files[conv.file[row]]).name == "tiny_models.py"
    text = Path(conv.files[conv.file[row]]).read_text().splitlines()[conv.line[row] - 1]
    assert "self.conv(x)" in text


def test_containers_are_paths_of_their_own(conv: GraphTable) -> None:
    types = dict(zip(conv.module_paths, conv.module_types, strict=True))
    assert types["blocks"] == "ModuleList"
    assert types["blocks.0"] == "ConvBlock"
    assert types["blocks.0.conv"] == "Conv2d"
    assert conv.name == "ConvNet"


@pytest.mark.parametrize("strict", [False, True])
def test_a_second_call_of_a_module_has_a_path_of_its_own(strict: bool) -> None:
    tiny = tiny_models.shared_layer()
    table = table_of(tiny.module, tiny.examples[0], strict=strict)
    linears = [table.module[row] for row in range(len(table)) if table.op[row] == "aten.linear.default"]
    assert linears == ["layer", "layer@1"]
    assert dict(zip(table.module_paths, table.module_types, strict=True))["layer@1"] == "Linear"


def test_symbols_are_numbered_in_the_order_of_the_inputs() -> None:
    tiny = tiny_models.text_model()
    batch = tiny.examples[1]["batch"]
    free = {0: Dim.DYNAMIC, 1: Dim.DYNAMIC}
    table = table_of(tiny.module, (batch,), ({"input_ids": free, "attention_mask": free},))
    assert table.shape[row_of(table, "aten.embedding.default")] == "s0xs1x16"


class UsesSizes(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[0] * 2 + 1
        return torch.arange(n) + x.sum()


def test_size_arithmetic_is_no_row_but_edges_pass_through_it() -> None:
    table = table_of(UsesSizes(), (torch.ones(3, 2),), ({0: Dim.DYNAMIC},))
    assert all("sym_size" not in op and op not in ("mul", "add") for op in table.op)
    arange = next(row for row in range(len(table)) if "arange" in table.op[row])
    edges = set(zip(table.edge_source, table.edge_target, strict=True))
    assert (table.op_id.index("x"), arange) in edges
    assert table.shape[arange] == "(2*s0+1)"


def test_ops_with_several_results_keep_their_parts_as_rows() -> None:
    tiny = tiny_models.many_outputs()
    with torch.no_grad():
        program = torch.export.export(tiny.module, (), tiny.examples[0], strict=False)
    table = build_graph_table(program, module=tiny.module)
    chunk = row_of(table, "aten.chunk.default")
    parts = [target for source, target in zip(table.edge_source, table.edge_target, strict=True) if source == chunk]
    assert [table.op[part] for part in parts] == ["getitem", "getitem"]


def test_row_names_are_the_names_of_the_nodes() -> None:
    tiny = tiny_models.text_model()
    with torch.no_grad():
        program = torch.export.export(tiny.module, (), tiny.examples[1], strict=False)
    table = build_graph_table(program, module=tiny.module)
    names = [node.name for node in program.graph.nodes]
    assert [name for name in names if name in set(table.op_id)] == list(table.op_id)
    computing = {
        node.name
        for node in program.graph.nodes
        if node.op == "call_function" and isinstance(node.meta.get("val"), Tensor | tuple | list)
    }
    assert computing <= set(table.op_id)
