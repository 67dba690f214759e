from __future__ import annotations

import pytest

from ace_studio.engine.finetune import finetune_module
from ace_studio.records.errors import AceError
from tests import tiny_models
from tests.engine.finetune.training_jobs import batches, damaged, job


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
