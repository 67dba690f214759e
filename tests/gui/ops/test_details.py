"""Everything known of the selected ops, in groups."""

from msgspec.structs import replace

from ace_studio.gui.ops.details import Detail, Group, as_text, details_of
from ace_studio.records.recipes.plan import Plan
from ace_studio.records.recipes.recipe import Recipe
from ace_studio.records.results import Region, RegionChoice
from ace_studio.session.document import Document, Selection
from tests.gui.graph_tables import layered_table
from tests.gui.run_results import TABLE, result_of, three_runs


def of(*op_ids, graph=None):
    document = Document(recipe=Recipe(plan=Plan()), graph=graph or layered_table(4), selection=Selection(op_ids=op_ids))
    return {group.title: [(line.name, line.value) for line in group.lines] for group in details_of(document)}


def test_an_op_is_described_with_its_neighbours_and_what_decides_its_precision():
    found = of("add_1")
    assert ("operator", "aten.add.Tensor") in found["Op"]
    assert ("source", "/models/net.py:10") in found["Op"]
    assert [name for name, _ in found["Inputs"]] == ["act_1", "add_0", "mask"]
    assert [value.split()[0] for name, value in found["Outputs"] if name == "read by"] == ["linear_2", "add_2"]
    assert ("because", "default of the plan") in found["Precision"]


def test_attributes_and_weights_of_the_graph_are_a_line_each():
    graph = layered_table(1)
    at = graph.op_id.index("linear_0")
    attributes, weights = [""] * len(graph), [""] * len(graph)
    attributes[at], weights[at] = "stride = [2, 2]\ngroups = 1", "mlp.weight 8x4 float32\nmlp.bias 8 float32"
    graph = replace(graph, attributes=tuple(attributes), weights=tuple(weights))
    found = of("linear_0", graph=graph)
    assert found["Attributes"] == [("stride", "[2, 2]"), ("groups", "1")]
    assert found["Weights"] == [("mlp.weight", "8 × 4  float32"), ("mlp.bias", "8  float32")]


def test_a_block_is_summed_and_its_border_is_named():
    found = of("linear_1", "act_1")
    assert found["Selection"] == [("ops", "2 ops"), ("module", "layers.1.mlp")]
    assert [name for name, _ in found["Inputs from outside"]] == ["add_0"]
    assert [value.split()[0] for _, value in found["Read by others"]] == ["add_1"]
    assert dict(found["Operators"]) == {"linear": "1", "gelu": "1"}


def test_what_a_search_chose_from_is_a_line_per_precision_with_what_was_taken():
    run = three_runs(TABLE)[0]
    choices = (
        RegionChoice(precision="int8-static", latency_share=0.1, sqnr_db=31.5, size_bytes=16),
        RegionChoice(precision="fp32", latency_share=0.25, size_bytes=64),
    )
    region = Region(target=run.target, ops=("linear_0", "linear_1"), choices=choices)
    other = replace(region, target="eager", pays=False)
    result = result_of(TABLE, runs=(run,), regions=(other, region), chosen=0)
    document = Document(graph=TABLE, selection=Selection(op_ids=("linear_0",)), result=result, runs=result.runs)
    (lines,) = (group.lines for group in details_of(document) if group.title == "Choices of the search")
    assert [(line.name, line.value) for line in lines] == [
        ("int8-static", "10.00 % of the original's latency, saves 15.00 %, alone 31.5 dB, 16 B, taken"),
        ("fp32", "25.00 % of the original's latency, exact, 64 B"),
        ("decides with", "linear_1"),
    ]
    idle = replace(document, result=replace(result, regions=(replace(region, pays=False),)))
    (lines,) = (group.lines for group in details_of(idle) if group.title == "Choices of the search")
    assert "no lower precision is worthwhile here" in lines[2].value


def test_nothing_selected_is_nothing_and_text_has_a_line_per_detail():
    assert of() == {}
    groups = details_of(Document(graph=TABLE, selection=Selection(op_ids=("act_1",))))
    assert as_text(groups).startswith("Op\n\tname\tact_1\n")


def test_copied_lines_hold_no_formula_and_no_line_of_their_own():
    group = Group("Op", (Detail("name", '=HYPERLINK("http://x")'), Detail("module", "a\n=1+1")))
    assert as_text([group]) == 'Op\n\tname\t"\'=HYPERLINK(""http://x"")"\n\tmodule\t"a\n\'=1+1"'
