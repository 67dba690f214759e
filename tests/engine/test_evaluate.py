"""A candidate is valid only if it repeats, is finite, has eager's shapes; its metric is the user's own."""

import math

import pytest
import torch

from ace_studio.engine import evaluate
from ace_studio.engine.flow import Example
from ace_studio.records.errors import AceError, ErrorCode

EXAMPLES = [Example.of(torch.arange(6.0).reshape(2, 3) + k) for k in range(2)]


def double(x):
    return {"y": x * 2}


REFERENCES = [evaluate.flat_outputs(double, example) for example in EXAMPLES]


def check(call):
    return evaluate.check_candidate(call, EXAMPLES, REFERENCES)


def test_an_identical_candidate_has_no_error_and_capped_fidelity():
    fidelity = check(double)
    assert fidelity.max_abs_error == 0.0
    assert fidelity.sqnr_db == 200.0


def test_fidelity_sums_signal_and_noise_over_all_examples():
    fidelity = check(lambda x: {"y": x * 2 + (0.1 if float(x.max()) > 5.5 else 0.0)})
    signal = sum(float((reference[0] ** 2).sum()) for reference in REFERENCES)
    assert fidelity.max_abs_error == pytest.approx(0.1, rel=1e-5)
    assert fidelity.sqnr_db == pytest.approx(10 * math.log10(signal / (6 * 0.1**2)), abs=1e-3)


def test_a_near_silent_example_does_not_decide_alone():
    quiet = Example.of(torch.full((2, 3), 1e-6))
    examples = [*EXAMPLES, quiet]
    references = [*REFERENCES, evaluate.flat_outputs(double, quiet)]
    fidelity = evaluate.check_candidate(lambda x: {"y": x * 2 + 1e-3}, examples, references)
    assert fidelity.sqnr_db > 60


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: {"y": (x * 2)[:1]}, "outputs of shape"),
        (lambda x: {"y": x * math.nan}, "not finite"),
        (lambda x: {"y": x * 2 + torch.rand(())}, "different outputs for the same input"),
    ],
)
def test_an_invalid_candidate_is_refused_with_the_rule_it_breaks(call, words):
    with pytest.raises(AceError, match=words) as caught:
        check(call)
    assert caught.value.problem.code is ErrorCode.WRONG_CAPTURE
    assert caught.value.problem.remedy


def test_state_between_calls_is_found():
    state = {"n": 0.0}

    def counting(x):
        state["n"] += 1
        return {"y": x * 2 + state["n"] - 1}

    with pytest.raises(AceError, match="different outputs"):
        check(counting)


@pytest.mark.parametrize(
    ("scale", "noise", "repeats"), [(1e6, 1.0, True), (1e6, 1e3, False), (1e-4, 1e-5, False), (1e-4, 1e-9, True)]
)
def test_calls_may_differ_by_a_part_of_the_largest_output(scale, noise, repeats):
    state = {"n": 0}

    def noisy(x):
        state["n"] += 1
        return x * scale + noise * state["n"]

    examples = [Example.of(torch.linspace(-1.0, 1.0, 8))]
    references = [evaluate.flat_outputs(lambda x: x * scale, examples[0])]
    if repeats:
        evaluate.check_candidate(noisy, examples, references)
    else:
        with pytest.raises(AceError, match="different outputs"):
            evaluate.check_candidate(noisy, examples, references)


def test_outputs_that_change_their_shape_do_not_repeat():
    state = {"n": 0}

    def growing(x):
        state["n"] += 1
        return x.repeat(state["n"])

    examples = [Example.of(torch.ones(3))]
    with pytest.raises(AceError, match="different outputs"):
        evaluate.check_candidate(growing, examples, [[torch.ones(3)]])


def test_the_metric_is_what_the_function_returns():
    score = evaluate.measure_score(lambda predict: predict(3), lambda x: x / 4, what="this", higher_is_better=True)
    assert score.value == 0.75


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda predict: 1 / 0, "ZeroDivisionError"),
        (lambda predict: None, "NoneType instead of a number"),
        (lambda predict: math.nan, "returned nan"),
    ],
)
def test_a_broken_metric_function_is_the_users_problem_with_a_remedy(function, words):
    with pytest.raises(AceError, match=words) as caught:
        evaluate.measure_score(function, double, what="eager fp32", higher_is_better=True)
    assert caught.value.problem.code is ErrorCode.USER_CODE
    assert caught.value.problem.remedy


def test_a_raising_metric_is_located_in_the_users_file():
    def broken(predict):
        raise KeyError("labels")

    with pytest.raises(AceError) as caught:
        evaluate.measure_score(broken, double, what="this", higher_is_better=True)
    assert caught.value.problem.where.startswith(__file__)


@pytest.mark.parametrize(
    ("baseline", "metric", "higher", "drop"),
    [
        (0.8, 0.4, True, 0.5),
        (0.8, 0.9, True, -0.125),
        (2.0, 3.0, False, 0.5),
        (-2.0, -3.0, True, 0.5),
        (0.0, -0.1, True, 0.1),
    ],
)
def test_the_drop_is_relative_to_the_baseline_and_positive_for_a_loss(baseline, metric, higher, drop):
    assert evaluate.metric_drop(baseline, metric, higher_is_better=higher) == pytest.approx(drop)


def test_predict_gives_back_the_nesting_that_forward_gives():
    predict = evaluate.on_device(double, torch.device("cpu"))
    assert set(predict(torch.ones(2))) == {"y"}


def test_a_call_that_writes_into_its_input_leaves_the_example_as_it_was():
    example = Example.of(torch.ones(2))
    assert evaluate.flat_outputs(lambda x: x.add_(1), example)[0].tolist() == [2.0, 2.0]
    assert example.args[0].tolist() == [1.0, 1.0]


def test_a_model_that_writes_into_its_input_repeats():
    examples = [Example.of(torch.ones(2, 3))]
    references = [evaluate.flat_outputs(lambda x: x.add_(1), examples[0])]
    fidelity = evaluate.check_candidate(lambda x: x.add_(1), examples, references)
    assert fidelity.sqnr_db == 200.0


def test_what_is_known_to_draw_random_numbers_is_the_reason_given():
    with pytest.raises(AceError) as caught:
        evaluate.check_candidate(
            lambda x: {"y": x * 2 + torch.rand(())}, EXAMPLES, REFERENCES, suspect="rand (net.py:3)"
        )
    assert caught.value.problem.why == "rand (net.py:3)"


def test_another_rank_is_not_blamed_on_a_fixed_size():
    with pytest.raises(AceError) as caught:
        check(lambda x: {"y": (x * 2)[..., None]})
    assert "size was fixed" not in caught.value.problem.why


class Logarithm(torch.nn.Module):
    """Gives NaN below zero."""

    def forward(self, x):
        return {"y": x.log(), "found": None}


def test_a_model_that_gives_nothing_but_nan_is_no_model_to_compare_with():
    examples = [Example.of(torch.tensor([-1.0, value])) for value in (-2.0, -3.0)]
    with pytest.raises(AceError) as caught:
        evaluate.eager_outputs(Logarithm(), examples)
    assert caught.value.problem.code is ErrorCode.BAD_INPUT
    some = [Example.of(torch.tensor([-1.0, 1.0]))]
    assert len(evaluate.eager_outputs(Logarithm(), [*examples, *some])) == 3


def first_of(scores):
    return {"scores": scores, "best": scores.argmax(1), "is_high": scores > 1}


SCORES = [Example.of(torch.tensor([[1.0, 1.001, 0.0], [3.0, 0.0, 2.0]]))]
DECIDED = [evaluate.flat_outputs(first_of, example) for example in SCORES]


def nearly(scores):
    return first_of(scores + torch.tensor([0.002, 0.0, 0.0]))


def test_indices_and_truth_values_are_counted_and_not_measured():
    fidelity = evaluate.check_candidate(nearly, SCORES, DECIDED)
    assert fidelity.sqnr_db > 50.0
    assert fidelity.max_abs_error == pytest.approx(0.002, rel=1e-3)
    assert fidelity.agreement == pytest.approx(6 / 8)  # one index and one comparison changed
    assert check(double).agreement is None


def test_labels_alone_are_measured_as_they_are():
    labels = [[torch.tensor([1, 2, 3])]]
    example = [Example.of(torch.tensor([1, 2, 3]))]
    fidelity = evaluate.check_candidate(lambda x: x + 1, example, labels)
    assert fidelity.sqnr_db < 10.0 and fidelity.agreement is None


def test_predict_says_that_it_takes_no_arrays_of_numpy():
    predict = evaluate.on_device(double, torch.device("cpu"))
    with pytest.raises(TypeError, match=r"torch.from_numpy"):
        predict(torch.ones(2).numpy())
