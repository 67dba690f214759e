"""`ace_studio.compile` with pruning and fine-tuning: the drop-in module is what was pruned and trained."""

import pytest
import torch

import ace_studio
from ace_studio.records.errors import AceError, ErrorCode
from tests.flows.test_python_function import make_net, points


def test_a_module_is_pruned_trained_built_and_compared_with_the_original():
    net = make_net()
    before = [one.clone() for one in net.parameters()]
    result = ace_studio.compile(
        net,
        tracing_inputs=[points(2, 1), points(5, 2)],
        prune={"method": "unstructured", "amount": 0.5},
        finetune={"method": "train", "learning_rate": 0.01, "epochs": 4},
        finetune_data=[(points(16, seed), points(16, seed)[:, :4]) for seed in range(8)],
        finetune_loss=lambda output, label: (output - label).square().mean(),
        target="eager",
        rounds=2,
    )
    report = result.report
    assert report.pruning.parameters_after < report.pruning.parameters_before
    assert report.finetune.kept and report.finetune.score_name == "held-out loss"
    assert all(torch.equal(one, other) for one, other in zip(before, net.parameters(), strict=True))
    x = points(64, 99)
    loss = lambda call: float((call(x).detach() - x[:, :4]).square().mean())  # noqa: E731
    assert loss(result.module) < loss(net)  # the original was never trained
    assert report.runs[0].verified and report.runs[0].sqnr_db < 40
    assert isinstance(report.advice, tuple)


def test_a_wrong_key_of_pruning_is_named():
    with pytest.raises(AceError) as caught:
        ace_studio.compile(make_net(), tracing_inputs=[points(2, 1)], prune={"method": "magic", "amount": 3.0})
    assert {one.code for one in caught.value.problems} == {ErrorCode.USAGE}
    assert {one.where for one in caught.value.problems} == {"compile(), method", "compile(), amount"}
