"""Calibration data that are no good end the job before anything is built."""

import pytest
import torch
from torch import nn

from ace_studio.engine.flow import DataSources, Example
from ace_studio.engine.pipeline.compress.calibration import (
    WatchedMetric,
    read_calibration,
    warn_about_calibration,
)
from ace_studio.engine.progress import Reporter
from ace_studio.records.errors import AceError, ErrorCode
from tests.engine.captured import captured_of


@pytest.fixture(scope="module")
def captured():
    return captured_of(nn.Linear(4, 2).eval(), torch.ones(2, 4), torch.ones(3, 4))


def read(captured, calibration, samples=3):
    return read_calibration(DataSources(calibration=calibration), captured, samples=samples)


def endless():
    while True:
        yield torch.ones(2, 4)


def broken():
    yield torch.ones(2, 4)
    raise OSError("disk gone")


def test_an_endless_iterable_is_read_up_to_the_limit(captured):
    assert len(read(captured, endless)) == 3


def test_without_data_the_given_examples_serve_and_made_up_sizes_do_not(captured):
    assert len(read(captured, None)) == 2


@pytest.mark.parametrize(
    ("calibration", "code", "words"),
    [
        (list, ErrorCode.NO_DATA, "no examples"),
        (broken, ErrorCode.USER_CODE, "disk gone"),
        (lambda: [torch.ones(2, 4), torch.ones(2, 5)], ErrorCode.BAD_INPUT, "calibration example 2"),
    ],
)
def test_bad_data_are_refused_in_words(captured, calibration, code, words):
    with pytest.raises(AceError, match=words) as caught:
        read(captured, calibration)
    assert caught.value.problem.code is code
    assert caught.value.problem.remedy


def test_one_tensor_is_one_example_and_not_a_list_of_its_rows(captured):
    (example,) = read(captured, lambda: torch.ones(3, 4))
    assert example.args[0].shape == (3, 4)


class Weighted(nn.Module):
    def forward(self, x, weight):
        return x - weight


def test_calibration_by_name_in_another_order_feeds_each_input_its_own_tensor():
    made = captured_of(Weighted().eval(), *((torch.ones(n, 4), torch.zeros(n, 4)) for n in (2, 3)))
    (example,) = read(made, lambda: [{"weight": torch.zeros(5, 4), "x": torch.ones(5, 4)}])
    assert [float(one.mean()) for one in example.tensors()] == [1.0, 0.0]


def warnings_of(captured, calibration):
    reporter, data = Reporter(), DataSources(calibration=calibration)
    return read_calibration(data, captured, samples=9, reporter=reporter), [one.code for one in reporter.warnings]


def test_the_labels_of_a_loader_are_left_out(captured):
    pairs = [(torch.ones(2, 4), torch.tensor([0, 1])) for _ in range(3)]
    examples, codes = warnings_of(captured, lambda: pairs)
    assert [len(one.args) for one in examples] == [1, 1, 1]
    assert codes == ["calibration-labels"]


class Flat(nn.Module):
    """Takes any width in eager; x [n, w]."""

    def forward(self, x):
        return x * 2


@pytest.fixture(scope="module")
def narrow():
    return captured_of(Flat().eval(), torch.ones(2, 4), torch.ones(3, 4))


def test_examples_of_sizes_that_the_graph_does_not_take_are_left_out(narrow):
    examples, codes = warnings_of(narrow, lambda: [torch.ones(5, 4), torch.ones(5, 6)])
    assert len(examples) == 1
    assert codes == ["calibration-sizes"]


def test_if_the_graph_takes_no_example_the_dimension_is_named_and_they_are_left_to_the_targets(narrow):
    reporter = Reporter()
    data = DataSources(calibration=lambda: [torch.ones(5, 6), torch.ones(2, 6)])
    found = read_calibration(data, narrow, samples=3, reporter=reporter)
    assert [tuple(example.args[0].shape) for example in found] == [(5, 6), (2, 6)]
    (warning,) = reporter.warnings
    assert warning.code == "calibration-sizes"
    assert "dimension 1 of x is 6, and the graph holds 4" in warning.what


@pytest.mark.parametrize("sizes", [(8, 8), (1, 1, 1, 1), (5,)])
def test_batches_of_a_loader_become_those_that_the_graph_holds(sizes):
    held = captured_of(Flat().eval(), torch.ones(2, 4))
    rows = torch.arange(float(4 * sum(sizes))).reshape(-1, 4)
    examples, codes = warnings_of(held, lambda: list(rows.split(sizes)))
    assert not codes
    assert {tuple(example.args[0].shape) for example in examples} == {(2, 4)}
    assert torch.equal(torch.cat([example.args[0] for example in examples]), rows[: len(rows) // 2 * 2])


@pytest.mark.parametrize(("shared", "codes"), [(4, ["leaked-calibration"]), (3, ["leaked-calibration"]), (2, [])])
def test_calibration_samples_that_are_mostly_evaluated_on_too_are_told(shared, codes):
    rows = torch.arange(24.0).reshape(6, 4)
    metric = WatchedMetric(lambda predict: float(predict(rows[:4]).sum()))
    metric(lambda x: x)
    reporter = Reporter()
    warn_about_calibration([Example((rows[4 - shared : 8 - shared],))], metric, reporter)
    assert [one.code for one in reporter.warnings] == codes
