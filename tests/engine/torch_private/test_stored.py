"""Captured graphs as JSON, without any tensor."""

import torch
from torch import nn

from ace_studio.engine.torch_private.exporting import DYNAMIC, export_program
from ace_studio.engine.torch_private.stored import program_from_json, program_to_json, reading_of


def test_a_program_is_read_again_over_other_tensors_and_reads_the_same() -> None:
    x = torch.ones(4, 3)
    with torch.no_grad():
        program = export_program(nn.Linear(3, 2), (x,), {}, dynamic_shapes={"input": {0: DYNAMIC}}, strict=False)
    content = program_to_json(program)
    weights = {"weight": nn.Parameter(torch.ones(2, 3)), "bias": nn.Parameter(torch.zeros(2))}
    again = program_from_json(content, state=weights, constants={}, example=((x,), {}))
    assert reading_of(again) == reading_of(program)
    assert torch.equal(again.module()(torch.ones(7, 3)), torch.full((7, 2), 3.0))
