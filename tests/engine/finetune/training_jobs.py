"""Jobs of fine-tuning and their data."""

import copy

import torch

from ace_studio.engine.finetune import FinetuneJob
from ace_studio.engine.flow import Example
from ace_studio.engine.progress import Reporter
from ace_studio.records.recipes.recipe import FinetuneChoice, FinetuneMethod


def batches(count=8, *, rows=16, label=None):
    generator = torch.Generator().manual_seed(3)
    inputs = [torch.randn(rows, 16, generator=generator) for _ in range(count)]
    return [(Example(args=(one,)), None if label is None else label(one)) for one in inputs]


def job(module, teacher, *, data=None, method="distill", reporter=None, **values):
    choice_keys = {"epochs", "learning_rate", "seed", "max_seconds", "held_out"}
    choice = {"learning_rate": 0.005} | {key: values.pop(key) for key in choice_keys & set(values)}
    return FinetuneJob(
        module=module,
        teacher=teacher,
        choice=FinetuneChoice(method=FinetuneMethod(method), **choice),
        batches=batches() if data is None else data,
        reporter=reporter or Reporter(),
        **values,
    )


def damaged(teacher):
    """The teacher with half of its first layer's weights gone, and the mask."""
    module = copy.deepcopy(teacher)
    mask = torch.rand(module[0].weight.shape, generator=torch.Generator().manual_seed(0)) > 0.5
    with torch.no_grad():
        module[0].weight.mul_(mask)
    return module, {"0.weight": mask}
