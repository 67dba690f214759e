"""Whole graphs, ONNX files and subgraphs answer the same questions."""

import pytest
import torch
from torch import nn

from ace_studio.engine.flow import CapturedFile, CapturedModel, Example, PartialModel, Subgraph
from ace_studio.engine.subgraphs.run_pieces import Place
from ace_studio.records.tensors import DimFinding, DimVerdict, InputFinding
from tests.gui.graph_tables import layered_table

GIVEN, UNSEEN = Example((torch.ones(2, 4),)), Example((torch.ones(7, 4),))
BATCH = DimFinding(index=0, verdict=DimVerdict.DYNAMIC, size=2, symbol="s0", reason="sizes differ")
WIDTH = DimFinding(index=1, verdict=DimVerdict.STATIC, size=4, reason="4 in every example")
COMMON = {
    "table": layered_table(1),
    "inputs": (InputFinding(name="x", dtype="float32", dims=(BATCH, WIDTH)),),
    "example": GIVEN,
    "examples": (GIVEN, UNSEEN),
    "unseen": (UNSEEN,),
    "module": nn.Identity(),
    "device": torch.device("cpu"),
    "fingerprint": "f",
}
WHOLE = CapturedModel(**COMMON, program=None)
FILE = CapturedFile(**COMMON, program=None)


@pytest.fixture
def partial():
    return PartialModel(**COMMON, subgraphs=(Subgraph(Place(name="p0", kind="module", module="net"), WHOLE),))


def test_a_whole_graph_keeps_its_op_ids_and_those_of_a_subgraph_begin_with_its_name(partial):
    (whole,), (part,) = WHOLE.graphs(), partial.graphs()
    assert (whole.captured, whole.id_in_model("linear")) == (WHOLE, "linear")
    assert (part.captured, part.id_in_model("linear")) == (WHOLE, "p0.linear")


def test_only_a_whole_graph_of_torch_can_be_improved_and_the_others_say_why(partial):
    assert WHOLE.torch_graph is WHOLE
    assert not WHOLE.improvement_problem
    assert FILE.torch_graph is partial.torch_graph is None
    assert "not torch's" in FILE.improvement_problem
    assert "subgraphs" in partial.improvement_problem


def test_a_file_is_whole_without_eager_ops_and_a_partial_capture_has_them(partial):
    assert [one.is_whole for one in (WHOLE, FILE, partial)] == [True, True, False]
    assert [one.has_eager_ops for one in (WHOLE, FILE, partial)] == [True, False, True]


def test_made_up_sizes_are_not_among_the_given_examples():
    assert WHOLE.given_examples == (GIVEN,)


def test_dynamic_dimensions_have_their_symbols():
    assert WHOLE.dynamic_dims() == [{0: "s0"}]
