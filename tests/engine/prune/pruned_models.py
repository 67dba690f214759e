"""One pruning of a tiny model."""

import importlib.metadata
import importlib.util

import pytest

from ace_studio.engine.flow import Example
from ace_studio.engine.progress import Reporter
from ace_studio.engine.prune import PruneJob, prune_module
from ace_studio.records.recipes.recipe import PruneChoice, PruneMethod

needs_library = pytest.mark.skipif(
    importlib.util.find_spec("torch_pruning") is None, reason="torch-pruning is not installed"
)


def examples_of(tiny):
    return [Example.of(one) for one in tiny.examples]


def prune(tiny, method="unstructured", *, reporter=None, taylor=None, **choice):
    choice = PruneChoice(method=PruneMethod(method), **choice)
    job = PruneJob(
        module=tiny.module, choice=choice, examples=examples_of(tiny), reporter=reporter or Reporter(), taylor=taylor
    )
    return prune_module(job)
