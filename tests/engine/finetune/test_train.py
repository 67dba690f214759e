import msgspec
import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - the name that the whole field uses
from torch import nn

from ace_studio.engine.finetune import finetune_module, train
from ace_studio.engine.progress import Cancelled, Reporter
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.messages import Phase, Progress
from ace_studio.records.results.finetuning import FinetuneReport
from tests import tiny_models
from tests.engine.finetune.training_jobs import batches, damaged, job


def test_distillation_brings_a_pruned_model_back_towards_the_original():
    teacher = tiny_models.mlp().module
    module, masks = damaged(teacher)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    tuned = finetune_module(job(module, teacher, masks=masks, epochs=10))
    report = tuned.report
    assert report.kept and report.score_name == "held-out SQNR" and report.after > report.before + 0.5
    assert (report.examples, report.held_out) == (6, 2)
    assert [one.epoch for one in report.history] == list(range(11))
    assert report.history[0].loss is None and report.history[10].loss < report.history[1].loss
    assert not bool(tuned.module[0].weight[~masks["0.weight"]].any())  # what was pruned stays pruned
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())
    assert all(one.grad is None for one in tuned.module.parameters())


def test_training_that_makes_it_worse_is_thrown_away():
    teacher = tiny_models.mlp().module
    module, masks = damaged(teacher)
    tuned = finetune_module(job(module, teacher, masks=masks, learning_rate=5.0, epochs=2))
    assert not tuned.report.kept and tuned.report.after == tuned.report.before
    assert all(
        torch.equal(one, other) for one, other in zip(tuned.module.parameters(), module.parameters(), strict=True)
    )
    assert "no epoch was better" in tuned.report.reason


def test_the_same_seed_gives_the_same_weights():
    teacher = tiny_models.mlp().module
    module, masks = damaged(teacher)
    one, other, different = (
        finetune_module(job(module, teacher, masks=masks, seed=seed)).module[0].weight for seed in (1, 1, 2)
    )
    assert torch.equal(one, other) and not torch.equal(one, different)


def test_a_loss_of_the_users_trains_on_labels():
    teacher = tiny_models.mlp().module
    data = batches(10, label=lambda x: (x[:, 0] > 0).long())
    tuned = finetune_module(job(teacher, teacher, method="train", data=data, loss=F.cross_entropy, epochs=10))
    assert tuned.report.score_name == "held-out loss" and not tuned.report.higher_is_better
    assert tuned.report.after < 0.7 * tuned.report.before


def test_it_ends_in_time_and_says_so():
    teacher = tiny_models.mlp().module
    module, masks = damaged(teacher)
    report = finetune_module(job(module, teacher, masks=masks, epochs=50, max_seconds=1e-6)).report
    assert len(report.history) == 2 and "max_seconds" in report.stopped


def test_a_loss_that_is_not_finite_ends_it():
    teacher = tiny_models.mlp().module
    data = batches(4, label=lambda x: 0)
    broken = lambda output, label: output.sum() * float("nan")  # noqa: E731
    report = finetune_module(job(teacher, teacher, method="train", data=data, loss=broken, epochs=3)).report
    assert not report.kept and "not finite" in report.stopped


def test_progress_names_phase_epoch_and_loss_and_a_stop_is_heard():
    teacher = tiny_models.mlp().module
    heard = []
    finetune_module(job(teacher, teacher, epochs=2, reporter=Reporter(heard.append)))
    told = [one for one in heard if isinstance(one, Progress)]
    assert {one.phase for one in told} == {Phase.FINETUNE}
    assert any("epoch 2 of 2, loss" in one.detail for one in told)
    fractions = [one.fraction for one in told if one.fraction is not None]
    assert fractions == sorted(fractions) and fractions[0] >= 0 and fractions[-1] < 1
    stop = lambda: len(heard) > 5  # noqa: E731
    heard.clear()
    with pytest.raises(Cancelled):
        finetune_module(job(teacher, teacher, reporter=Reporter(heard.append, is_cancelled=stop)))


@pytest.mark.parametrize("count", [0, 1])
def test_too_little_data_is_told(count):
    teacher = tiny_models.mlp().module
    with pytest.raises(AceError) as caught:
        finetune_module(job(teacher, teacher, data=batches(count)))
    assert caught.value.problem.code is ErrorCode.NO_DATA


def test_training_with_rounding_makes_the_rounded_model_better():
    teacher = outlier_net()
    tuned = finetune_module(job(teacher, teacher, method="qat", epochs=10, learning_rate=0.002))
    assert tuned.report.layers == 2 and tuned.report.kept
    assert tuned.report.after > tuned.report.before
    assert not any("parametrizations" in name for name in tuned.module.state_dict())


def outlier_net():
    """A net in which one weight of each row is far larger than the others: int8 costs it much."""
    module = tiny_models.mlp().module
    with torch.no_grad():
        module[0].weight[:, 0] *= 60
    return module


def test_layers_that_the_plan_keeps_high_are_not_rounded():
    teacher = tiny_models.mlp().module
    tuned = finetune_module(job(teacher, teacher, method="qat", stays_high=lambda path, _: path == "2", epochs=1))
    assert tuned.report.layers == 1
    with pytest.raises(AceError) as caught:
        finetune_module(job(teacher, teacher, method="qat", stays_high=lambda *_: True))
    assert caught.value.problem.code is ErrorCode.UNSUPPORTED


def test_a_module_without_weights_cannot_be_trained():
    with pytest.raises(AceError) as caught:
        finetune_module(job(nn.ReLU(), nn.ReLU()))
    assert "no weights" in caught.value.problem.what


def test_the_users_metric_decides_if_there_is_one():
    teacher = tiny_models.mlp().module
    module, _ = damaged(teacher)
    scores = iter([0.5, 0.9, 0.7])
    tuned = finetune_module(job(module, teacher, metric=lambda predict: next(scores), epochs=2))
    assert (tuned.report.score_name, tuned.report.after, tuned.report.best_epoch) == ("metric", 0.9, 1)
    assert (tuned.report.examples, tuned.report.held_out) == (8, 0)


def test_a_metric_of_which_less_is_better_is_minded():
    teacher = tiny_models.mlp().module
    scores = iter([0.5, 0.9, 0.2])
    tuned = finetune_module(job(teacher, teacher, metric=lambda _: next(scores), higher_is_better=False, epochs=2))
    assert (tuned.report.after, tuned.report.best_epoch) == (0.2, 2)


def test_a_loss_that_gives_no_scalar_is_told():
    teacher = tiny_models.mlp().module
    data = batches(4, label=lambda x: 0)
    with pytest.raises(AceError) as caught:
        finetune_module(job(teacher, teacher, method="train", data=data, loss=lambda output, label: output))
    assert caught.value.problem.where == "[finetune] loss"


def test_training_that_diverges_with_rounding_ends_and_is_thrown_away():
    teacher = tiny_models.mlp().module
    report = finetune_module(job(teacher, teacher, method="qat", learning_rate=1e30, epochs=3)).report
    assert not report.kept and "lower learning_rate" in report.stopped
    assert report.history[-1].score is None
    assert msgspec.json.decode(msgspec.json.encode(report), type=FinetuneReport).stopped == report.stopped


def test_weights_of_an_epoch_before_training_diverges_are_kept(monkeypatch):
    teacher = tiny_models.mlp().module
    module, masks = damaged(teacher)
    run_epoch = train._Training._run_epoch

    def breaks_second(self, epoch, *args):
        loss = run_epoch(self, epoch, *args)
        if epoch < 2:
            return loss
        with torch.no_grad():
            self._module[0].weight.fill_(float("nan"))
        return loss

    monkeypatch.setattr(train._Training, "_run_epoch", breaks_second)
    tuned = finetune_module(job(module, teacher, method="qat", masks=masks, epochs=3))
    assert tuned.report.kept and tuned.report.best_epoch == 1
    assert [one.score is None for one in tuned.report.history] == [False, False, True]
    assert all(bool(one.isfinite().all()) for one in tuned.module.parameters())
