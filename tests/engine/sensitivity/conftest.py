"""Captured models for the tests of this folder, which only read them."""

import pytest
import torch

from tests.engine.sensitivity.scans import Chain, Mixed, captured_of, random_values


@pytest.fixture(scope="session")
def chain():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = Chain([1, 8, 1, 30, 2, 1, 15, 1, 4, 1])
    captured = captured_of(module, (random_values(2, 16),), (random_values(5, 16),))
    return captured, [[random_values(8, 16, seed=seed)] for seed in range(4)]


@pytest.fixture(scope="session")
def mixed():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = Mixed()
    captured = captured_of(module, (random_values(2, 3, 8, 8),), (random_values(5, 3, 8, 8),))
    return captured, [[random_values(8, 3, 8, 8, seed=seed)] for seed in range(4)]
