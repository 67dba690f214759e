"""What only a package of machine code has: threads and sizes that are fixed, and checked before it runs."""

import json

import pytest
import torch

from ace_studio.engine.targets import TARGETS, select_targets
from ace_studio.engine.targets.torch import aoti
from ace_studio.engine.targets.torch.aoti import checked_package
from ace_studio.engine.targets.torch.program import PROGRAM_NAME
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.tensors import SizeLimit
from tests.engine.targets.conftest import bound, captured_model, make_job

pytestmark = pytest.mark.skipif(not TARGETS["aoti"].available().ok, reason=TARGETS["aoti"].available().reason)


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """Built once: the package and the warnings that came with it."""
    captured, folder = captured_model("mlp"), tmp_path_factory.mktemp("aoti")
    job = make_job(captured, bound("aoti", captured, Precision.INT8_DYNAMIC), folder)
    lowered = TARGETS["aoti"].lower(job)
    return lowered.save(folder), job.reporter.warnings


@pytest.mark.slow
def test_the_package_says_its_threads_when_it_is_built_and_when_it_is_opened(package):
    path, warnings = package
    assert path.name == PROGRAM_NAME
    assert any("runs on 1 thread" in one.what for one in warnings)
    assert checked_package(path)[1] == 1
    TARGETS["aoti"].load(path, threads=2)(torch.zeros(3, 16))
    assert torch.get_num_threads() == 1


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [torch.zeros(2, 15), torch.zeros(2, 16, dtype=torch.float64), torch.zeros(16)])
def test_inputs_that_the_code_would_misread_are_refused(package, wrong):
    run = TARGETS["aoti"].load(package[0], threads=1)
    with pytest.raises(AceError) as caught:
        run(wrong)
    assert caught.value.problem.code is ErrorCode.BAD_INPUT
    assert "(any, 16)" in caught.value.problem.why


@pytest.mark.parametrize(("size", "is_proven"), [(3, True), (50, True), (2, False), (80, False)])
def test_sizes_beyond_the_proven_range_are_refused_with_the_range_in_words(size, is_proven, monkeypatch, tmp_path):
    one = {"dtype": "float32", "sizes": [None, None], "limits": [SizeLimit(0, 1, "x.1", 3, 50)]}
    notes = {"ace_inputs": json.dumps([one])}
    monkeypatch.setattr(aoti, "open_package", lambda path: (lambda *tensors: tensors, notes))
    run, _ = checked_package(tmp_path)
    if is_proven:
        run(torch.zeros(2, size))
        return
    with pytest.raises(AceError, match=r"x\.1 must be 3 to 50"):
        run(torch.zeros(2, size))


def test_auto_does_not_build_the_same_code_twice():
    names = [target.name for target in select_targets(["auto"])]
    assert "inductor" in names
    assert "aoti" not in names
    assert [target.name for target in select_targets(["aoti"])] == ["aoti"]
