import torch
from torch import fx

from ace_studio.engine.quantize.visit import visit_values


def graph_module() -> fx.GraphModule:
    graph = fx.Graph()
    x = graph.placeholder("x")
    parts = graph.call_function(torch.split, (x, 1))
    graph.output(graph.call_method("add_", (x, 1)))
    assert parts.name == "split"
    return fx.GraphModule({}, graph)


def test_every_tensor_is_shown_once_per_example_and_containers_are_not():
    seen: list[tuple[str, float]] = []
    visit_values(
        graph_module(),
        [[torch.zeros(2)], [torch.ones(2)]],
        lambda node, value: seen.append((node.name, float(value.sum()))),
    )
    assert seen == [("x", 0.0), ("add_", 2.0), ("output", 2.0), ("x", 2.0), ("add_", 4.0), ("output", 4.0)]


def test_a_graph_that_writes_into_its_input_leaves_the_example_alone():
    example = torch.zeros(2)
    visit_values(graph_module(), [[example]], lambda node, value: None)
    assert not example.any()
