"""Calibration examples are made to fit a captured graph, and what does not fit is said."""

from dataclasses import replace

import pytest
import torch

from ace_studio.engine.examples.fitting import that_fit, without_labels
from ace_studio.engine.flow import Example
from ace_studio.engine.progress import Reporter
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.tensors import DimFinding, DimVerdict, InputFinding
from tests.engine.flow.test_captured import WHOLE

ONE = Example((torch.ones(1, 4),))
FIXED = InputFinding(
    name="x",
    dtype="float32",
    dims=tuple(
        DimFinding(index=index, verdict=DimVerdict.STATIC, size=size, reason="") for index, size in enumerate((1, 4))
    ),
)
ONE_SAMPLE = replace(WHOLE, inputs=(FIXED,), example=ONE, examples=(ONE,), unseen=())
"""A graph that takes one sample of width 4."""


def silent() -> Reporter:
    return Reporter(lambda _: None, job="j")


def test_what_stands_behind_the_inputs_is_taken_for_labels_and_said() -> None:
    reporter = silent()
    pairs = [Example((torch.ones(1, 4), torch.tensor([3])))]
    assert [len(one.args) for one in without_labels(pairs, ONE_SAMPLE, reporter)] == [1]
    assert [one.code for one in reporter.warnings] == ["calibration-labels"]


def test_batches_of_a_loader_are_cut_to_the_batch_of_the_graph() -> None:
    reporter = silent()
    samples = torch.arange(12.0).reshape(3, 4)
    found = that_fit([Example((samples,))], ONE_SAMPLE, reporter)
    assert torch.equal(torch.cat([one.args[0] for one in found]), samples)
    assert {one.shapes() for one in found} == {((1, 4),)}
    assert not reporter.warnings


def test_examples_of_other_sizes_are_left_out_and_all_are_kept_if_none_fits() -> None:
    reporter = silent()
    wide = Example((torch.ones(1, 5),))
    assert that_fit([ONE, wide], ONE_SAMPLE, reporter) == [ONE]
    assert that_fit([wide], ONE_SAMPLE, reporter) == [wide]
    assert [one.code for one in reporter.warnings] == ["calibration-sizes"] * 2
    assert "dimension 1 of x is 5, and the graph holds 4" in reporter.warnings[0].what


def test_an_example_with_more_inputs_than_the_graph_is_refused_by_number() -> None:
    with pytest.raises(AceError) as caught:
        that_fit([ONE, Example((torch.ones(1, 4), torch.ones(1)))], ONE_SAMPLE, silent())
    assert caught.value.problem.code is ErrorCode.BAD_INPUT
    assert "calibration example 2" in caught.value.problem.what
    assert caught.value.problem.why == "it holds 2 tensors, and the graph was captured with 1: x"
