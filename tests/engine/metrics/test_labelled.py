"""A built-in metric on pairs that a function gives, and on the arrays of a file."""

import pytest
import torch

from ace_studio.engine.metrics import labelled_metric
from ace_studio.engine.metrics.labelled import metric_of_arrays
from ace_studio.records.errors import AceError, ErrorCode

SCORES = torch.eye(4)


def predict(x: torch.Tensor) -> torch.Tensor:
    return SCORES[x.long().reshape(-1)]


def test_pairs_may_be_single_samples_or_batches():
    pairs = [(torch.tensor([1]), 1), (torch.tensor([2, 3]), torch.tensor([2, 0]))]
    score = labelled_metric("top-1", lambda: pairs)(predict)
    assert score.samples == 3
    assert score.value == pytest.approx(2 / 3)
    assert score.labels == ("1", "2", "0")
    assert len(score.outputs) == 3


def test_the_judged_output_is_chosen_by_its_path():
    def two(x):
        return {"features": torch.zeros(len(x), 4), "logits": predict(x)}

    pairs = [(torch.tensor([1, 2]), torch.tensor([1, 2]))]
    assert labelled_metric("top-1", lambda: pairs, output="logits")(two).value == 1.0
    with pytest.raises(AceError) as caught:
        labelled_metric("top-1", lambda: pairs, output="logit")(two)
    assert "features, logits" in caught.value.problem.why


def test_a_text_is_its_own_label_for_perplexity():
    def certain(tokens):
        scores = torch.full((*tokens.shape, 5), -30.0)
        scores.scatter_(-1, ((tokens + 1) % 5).unsqueeze(-1), 30.0)
        return scores

    texts = [(torch.tensor([[0, 1, 2, 3]]),), (torch.tensor([[3, 4, 0]]),)]
    assert labelled_metric("perplexity", lambda: texts)(certain).value == pytest.approx(1.0)
    assert labelled_metric("perplexity", lambda: [(torch.tensor([[0, 2, 4]]),)])(certain).value > 1e20


def test_the_arrays_of_a_file_are_run_in_equal_batches_and_counted_once():
    sizes = []

    def watched(x):
        sizes.append(len(x))
        return predict(x)

    arrays = {"x": torch.tensor([0, 1, 2, 3, 0]), "labels": torch.tensor([0, 1, 2, 3, 1])}
    score = metric_of_arrays("top-1", arrays, batch=2)(watched)
    assert sizes == [2, 2, 2]
    assert score.samples == 5
    assert score.value == pytest.approx(0.8)


def test_texts_of_a_file_are_counted_once_for_perplexity():
    def sure_of_zero(tokens):
        return torch.tensor([2.0, 0.0]).expand(*tokens.shape, 2)

    arrays = {"x": torch.tensor([[0, 0, 0], [0, 0, 0], [0, 1, 1]])}
    equal = metric_of_arrays("perplexity", arrays, batch=3)(sure_of_zero)
    padded = metric_of_arrays("perplexity", arrays, batch=2)(sure_of_zero)
    assert padded.samples == equal.samples == 3
    assert padded.value == pytest.approx(equal.value)


def test_inputs_of_a_file_go_to_the_arguments_of_their_names():
    def named(*, ids, mask):
        return predict(ids * mask)

    arrays = {"ids": torch.tensor([1, 2]), "mask": torch.tensor([1, 0]), "y": torch.tensor([1, 0])}
    assert metric_of_arrays("top-1", arrays, batch=1)(named).value == 1.0


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"x": torch.zeros(3)}, "no labels"),
        ({"labels": torch.zeros(3)}, "no inputs"),
        ({"x": torch.zeros(3), "labels": torch.zeros(4)}, "not equally long"),
    ],
)
def test_a_file_that_is_no_labelled_data_is_refused(arrays, words):
    with pytest.raises(AceError) as caught:
        metric_of_arrays("top-1", arrays, batch=1)
    assert words in caught.value.problem.what


@pytest.mark.parametrize(
    ("pairs", "code"),
    [
        ([], ErrorCode.NO_DATA),
        ([torch.tensor([1])], ErrorCode.BAD_INPUT),
        ([(torch.tensor([1]), torch.tensor([1, 2]))], ErrorCode.BAD_INPUT),
        ([(torch.tensor([1]), 1.5)], ErrorCode.BAD_INPUT),
    ],
)
def test_data_that_do_not_fit_are_said_in_words(pairs, code):
    with pytest.raises(AceError) as caught:
        labelled_metric("top-1", lambda: pairs)(predict)
    assert caught.value.problem.code is code


def broken():
    raise KeyError("split")


def broken_later():
    yield torch.tensor([1]), 1
    raise KeyError("split")


@pytest.mark.parametrize("broken", [broken, broken_later])
def test_a_data_function_that_raises_is_the_users_problem(broken):
    with pytest.raises(AceError) as caught:
        labelled_metric("top-1", broken)(predict)
    assert caught.value.problem.code is ErrorCode.USER_CODE
