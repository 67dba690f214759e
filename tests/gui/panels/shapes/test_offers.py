"""Values that suit an input, and sizes for targets."""

from __future__ import annotations

from ace_studio.gui.panels.shapes.offers import vocabularies, wants_sizes
from ace_studio.records.graph import GraphTable, OpKind
from ace_studio.records.recipes.recipe import Recipe, TargetsChoice
from ace_studio.records.tensors import InputFinding
from ace_studio.session.document import Document


def graph_of(*rows):
    """A graph of (id, kind, operator, dtype, weights) rows, each reading the one before it."""
    columns = list(zip(*rows, strict=True))
    count = len(rows)
    blank = dict.fromkeys(("module", "shape", "device"), ("",) * count)
    zero = dict.fromkeys(("file", "line", "flops", "weight_bytes", "output_bytes"), (0,) * count)
    edges = {"edge_source": tuple(range(count - 1)), "edge_target": tuple(range(1, count))}
    names = ("op_id", "kind", "op", "dtype", "weights")
    return GraphTable(**dict(zip(names, columns, strict=True)), **blank, **zero, **edges)


def test_the_rows_of_an_embedding_are_found_for_the_input_that_indexes_it():
    graph = graph_of(
        ("flag", OpKind.INPUT, "input", "", ""),
        ("ids", OpKind.INPUT, "input", "int64", ""),
        ("embedding", OpKind.OP, "aten.embedding.default", "float32", "embed.weight 50x16 float32"),
    )
    assert vocabularies(graph, [InputFinding(name="batch.ids", dtype="int64", dims=())]) == {"batch.ids": 50}


def test_sizes_for_targets_are_asked_for_where_a_chosen_target_is_built_for_them():
    def of(*names, **more):
        return Document(recipe=Recipe(targets=TargetsChoice(names=names, **more)))

    assert wants_sizes(of("tensorrt"))
    assert not wants_sizes(of("openvino"))
    assert wants_sizes(of("openvino", sizes={"x.0": (1, 4, 8)}))
