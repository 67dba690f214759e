"""The samples that lose most, by loss where there is one, else by outputs."""

import numpy as np
import torch

from ace_studio.engine.metrics import METRICS, Score, labelled_metric
from ace_studio.engine.profile.worst import worst_of_outputs, worst_of_scores


def scored(outputs: torch.Tensor, labels: torch.Tensor, name: str = "top-1") -> Score:
    return labelled_metric(name, lambda: [(outputs, labels)])(lambda x: x)


def test_samples_that_lose_most_come_first_and_those_that_gain_are_left_out():
    labels = torch.tensor([0, 1, 2, 1])
    before = torch.eye(3)[labels] * 5
    after = before.clone()
    after[1] = torch.tensor([9.0, 0.0, 0.0])
    after[2] = torch.tensor([0.0, 0.0, 4.0])
    after[3] = torch.tensor([0.0, 9.0, 0.0])
    first, second = worst_of_scores(scored(before, labels), scored(after, labels), run=3)
    assert (first.sample, first.run, first.source, first.label) == (1, 3, "evaluation", "1")
    assert second.sample == 2
    assert first.error > second.error > 0
    assert first.sqnr_db < second.sqnr_db


def test_without_a_loss_the_outputs_decide():
    labels = torch.tensor([0.0, 1.0, 2.0])
    before, after = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 2.2, 3.0])
    (only,) = worst_of_scores(scored(before, labels, "spearman"), scored(after, labels, "spearman"), run=0)
    assert only.sample == 1
    assert only.sqnr_db == np.round(-10 * np.log10(0.04 / 4), 2)
    assert METRICS["spearman"].measure(before, labels).loss is None


def test_a_metric_without_samples_names_none():
    assert worst_of_scores(Score(value=1.0), Score(value=0.5), run=0) == []


def test_examples_are_ranked_by_the_fidelity_of_their_outputs():
    references = [[torch.ones(4)], [torch.ones(4)], [torch.ones(4)]]
    outputs = [[torch.ones(4)], [torch.ones(4) * 1.5], [torch.ones(4) * 1.1]]
    found = worst_of_outputs(references, outputs, run=1, source="tracing")
    assert [one.sample for one in found] == [1, 2]
    assert abs(found[0].error - 0.25) < 1e-6
