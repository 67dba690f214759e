"""The check on a GPU: which jobs it runs, what it reports, and that it says so where there is no GPU."""

import importlib.util
import json
from pathlib import Path

import pytest
import torch

from ace_studio.records.sweep_file import read_jobs


@pytest.fixture(scope="module")
def check(root):
    spec = importlib.util.spec_from_file_location("gpu_check", root / "packaging" / "gpu" / "check.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_target_gets_the_precisions_that_it_has_and_no_others(check, tmp_path):
    path = check.write_sweep(tmp_path, models=check.MODELS, targets=list(check.PLANS), device="cuda")
    jobs = read_jobs([path])
    made = {(Path(job.recipe_path).stem, job.axes["target"], job.recipe.plan.label) for job in jobs}
    plans = {(target, plan) for target, plans in check.PLANS.items() for plan in plans}
    assert made == {(model, *pair) for model in check.MODELS for pair in plans}
    assert {job.recipe.measure.device for job in jobs} == {"cuda"}


def test_a_failed_job_stands_in_the_table_with_its_error(check):
    row = {
        "recipe": "sweep/encoder.toml",
        "axes": {"target": "tensorrt", "plan": "fp16"},
        "verified": False,
        "error": {"what": "TensorRT refused a | b"},
    }
    assert list(check.table_lines([row]))[-1] == "| encoder | tensorrt | fp16 |  |  |  |  |  | TensorRT refused a / b |"


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so_and_starts_nothing(check, tmp_path, capfd):
    assert check.main(["--out", str(tmp_path)]) == check.NO_GPU
    assert "no GPU can be used here" in capfd.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.full  # a sweep, as in tests/sweeps
@pytest.mark.slow
def test_its_jobs_run_and_come_into_the_report(check, tmp_path):
    words = ["--out", str(tmp_path), "--models", "tiny", "--targets", "onnxruntime", "--device", "cpu", "--no-tests"]
    assert check.main(words) == 0
    found = json.loads((tmp_path / "gpu-check.json").read_text())
    assert {(row["axes"]["plan"], row["verified"]) for row in found["rows"]} == {("fp32", True), ("int8-static", True)}
    assert "| tiny | onnxruntime | int8-static |" in (tmp_path / "gpu-check.md").read_text()
