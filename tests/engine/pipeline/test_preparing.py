"""Pruning and fine-tuning between loading and capturing, and the request that only previews."""

import importlib.util
import json

import pytest
import torch

from ace_studio.engine import pipeline
from ace_studio.engine.flow import Example, LoadedModel, PartialModel
from ace_studio.engine.pipeline.preparing import check_subgraphs, prepare_model
from ace_studio.engine.pipeline.ready import ReadyModel, make_ready
from ace_studio.engine.progress import Reporter
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.messages import (
    ModelCaptured,
    Phase,
    Progress,
    PrunePreviewRequest,
    PruningPreviewed,
    RunRequest,
)
from ace_studio.records.recipes.file import parse_recipe, read_recipe
from tests import tiny_models

SOURCE = """
import torch
from torch import nn

def make_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))

def tracing_inputs():
    return [(torch.ones(1, 8),), (torch.ones(3, 8),)]

def calibration_inputs():
    generator = torch.Generator().manual_seed(1)
    return [(torch.randn(16, 8, generator=generator),) for _ in range(8)]

def pairs():
    return [(x, x[:, :4]) for (x,) in calibration_inputs()]

def loss(output, label):
    return (output - label).square().mean()

def evaluate(predict):
    x = torch.randn(64, 8, generator=torch.Generator().manual_seed(2))
    return -float((predict(x) - x[:, :4]).square().mean())
"""
RECIPE = """format = 1
[model]
source = "model.py"
entry = "make_model"
[inputs]
tracing = "tracing_inputs"
[calibration]
inputs = "calibration_inputs"
[capture]
cache = false
[measure]
rounds = 2
[targets]
names = ["eager"]
"""
needs_library = pytest.mark.skipif(
    importlib.util.find_spec("torch_pruning") is None, reason="torch-pruning is not installed"
)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "model.py").write_text(SOURCE)
    return tmp_path


def write(folder, extra):
    path = folder / "recipe.toml"
    path.write_text(RECIPE + extra)
    return read_recipe(path)


def run(folder, extra):
    events = []
    request = RunRequest(
        job="run", recipe=write(folder, extra), folder=str(folder), trust_all=True, output=str(folder / "out")
    )
    pipeline.run(request, Reporter(events.append, job="run"))
    return json.loads((folder / "out" / "result.json").read_text()), events


PRUNE = '[prune]\nmethod = "unstructured"\namount = 0.6\n'


def test_a_run_prunes_and_trains_before_it_captures_and_compares_with_the_original(folder):
    training = '[finetune]\nmethod = "train"\ndata = "pairs"\nloss = "loss"\nlearning_rate = 0.01\nepochs = 5\n'
    extra = PRUNE + training + '[evaluate]\nfunction = "evaluate"\n'
    result, events = run(folder, extra)
    (only,) = result["runs"]
    assert only["status"] == "ok" and only["verified"], only
    pruning, finetune = result["pruning"], result["finetune"]
    assert pruning["metric_before"] == result["baseline"]["metric"] != pruning["metric_after"]
    assert finetune["kept"] and finetune["score_name"] == "metric" and len(finetune["history"]) == 6
    # fp32 throughout: what the run has lost against the original is what training left
    assert only["metric"] == pytest.approx(finetune["after"], abs=1e-6)
    assert only["sqnr_db"] < 60 and result["baseline"]["size_bytes"] == pruning["bytes_before"]
    phases = [one.phase for one in events if isinstance(one, Progress)]
    assert phases.index(Phase.PRUNE) < phases.index(Phase.FINETUNE) < phases.index(Phase.CAPTURE)
    assert parse_recipe(result["recipe"], name="r") == read_recipe(folder / "recipe.toml")
    assert result["folder"] == str(folder)


@needs_library
def test_channels_that_are_gone_are_gone_from_the_graph_and_the_artifact(folder):
    result, events = run(folder, '[prune]\nmethod = "structured"\n')
    assert result["runs"][0]["verified"] and result["finetune"] is None
    graph = next(one for one in events if isinstance(one, ModelCaptured)).graph
    assert sum(graph.weight_bytes) == result["pruning"]["bytes_after"] < result["baseline"]["size_bytes"]


def test_a_recipe_without_pruning_and_training_leaves_the_model_alone(folder):
    loaded = LoadedModel(module=tiny_models.mlp().module, source=folder, sha256="abc")
    ready = ReadyModel(loaded, (), torch.device("cpu"))
    found = prepare_model(ready, write(folder, ""), reporter=Reporter())
    assert found.ready is ready and found.pruning is None and found.finetune is None


def preview(folder, extra):
    events = []
    request = PrunePreviewRequest(job="p", recipe=write(folder, extra), folder=str(folder), trust_all=True)
    pipeline.preview_prune(request, Reporter(events.append, job="p"))
    return events


def test_a_preview_captures_and_writes_nothing_and_ends_with_its_report(folder):
    before = sorted(folder.iterdir())
    events = preview(folder, PRUNE + '[evaluate]\nfunction = "evaluate"\n')
    assert isinstance(events[-1], PruningPreviewed) and not any(isinstance(one, ModelCaptured) for one in events)
    report = events[-1].report
    assert report.metric_before is not None and report.metric_after != report.metric_before
    assert {row.module for row in report.layers} == {"0", "2"}
    assert [one for one in sorted(folder.iterdir()) if one not in before and one.name != "__pycache__"] == [
        folder / "recipe.toml"
    ]


def test_a_preview_of_nothing_says_what_to_write(folder):
    with pytest.raises(AceError) as caught:
        preview(folder, "")
    assert caught.value.problem.code is ErrorCode.RECIPE and caught.value.problem.where == "[prune] method"


def test_a_batch_that_is_no_pair_is_told(folder):
    extra = '[finetune]\nmethod = "train"\ndata = "calibration_inputs"\nloss = "loss"\n'
    with pytest.raises(AceError) as caught:
        run(folder, extra)
    assert caught.value.problem.code is ErrorCode.BAD_INPUT and caught.value.problem.where == "[finetune] data"


def prepared(extra, *, frontend="torch"):
    tiny = tiny_models.mlp()
    examples = tuple(Example.of(one) for one in tiny.examples)
    loaded = LoadedModel(module=tiny.module, source=tiny_models.__file__, sha256="abc", frontend=frontend)
    recipe = parse_recipe('format = 1\n[model]\nsource = "m.py"\n' + extra, name="r")
    return tiny, prepare_model(ReadyModel(loaded, examples, torch.device("cpu")), recipe, reporter=Reporter())


def test_the_users_module_goes_along_and_the_hash_tells_the_two_apart():
    tiny, found = prepared(PRUNE)
    assert found.ready.loaded.original is tiny.module and found.ready.loaded.module is not tiny.module
    assert found.ready.loaded.sha256 not in ("", "abc")
    assert found.ready.loaded.sha256 == prepared(PRUNE)[1].ready.loaded.sha256
    assert found.ready.loaded.sha256 != prepared(PRUNE.replace("0.6", "0.5"))[1].ready.loaded.sha256


def test_rounding_in_training_follows_the_rules_of_the_plan():
    plan = '[plan]\ndefault = "int8-static"\n[[plan.rules]]\nmatch = "module:2"\nprecision = "fp32"\n'
    assert prepared(plan + '[finetune]\nmethod = "qat"\nepochs = 1\n')[1].finetune.layers == 1
    with pytest.raises(AceError):
        prepared('[plan]\ndefault = "bf16"\n[finetune]\nmethod = "qat"\n')
    assert prepared('[finetune]\nmethod = "qat"\nepochs = 1\n')[1].finetune.layers == 2  # the goal chooses: int8


def test_a_model_that_training_did_not_help_is_the_users_own():
    tiny, found = prepared('[finetune]\nmethod = "distill"\nepochs = 1\n')  # its own teacher: nothing to learn
    assert not found.finetune.kept
    assert (
        found.ready.loaded.module is tiny.module
        and found.ready.loaded.original is None
        and found.ready.loaded.sha256 == "abc"
    )


def test_data_out_of_a_file_is_what_is_trained_on(folder):
    import numpy

    numpy.savez(folder / "data.npz", input=numpy.random.default_rng(0).normal(size=(48, 8)).astype("float32"))
    recipe = write(folder, PRUNE + '[finetune]\nmethod = "distill"\nepochs = 1\n')
    text = (folder / "recipe.toml").read_text().replace('inputs = "calibration_inputs"', 'inputs = "data.npz"')
    recipe = parse_recipe(text, name="r")
    request = RunRequest(job="r", recipe=recipe, folder=str(folder), trust_all=True, output=str(folder / "out"))
    ready = make_ready(pipeline.load_requested(request, Reporter()), recipe, folder)
    found = prepare_model(ready, recipe, reporter=Reporter())
    assert found.finetune.examples + found.finetune.held_out > 2


@needs_library
def test_a_model_in_subgraphs_keeps_its_channels():
    captured = object.__new__(PartialModel)  # only what it is counts
    _, changed = prepared('[prune]\nmethod = "structured"\n')
    with pytest.raises(AceError) as caught:
        check_subgraphs(changed.ready.loaded, captured)
    assert caught.value.problem.code is ErrorCode.UNSUPPORTED and "subgraphs" in caught.value.problem.what
    check_subgraphs(prepared(PRUNE)[1].ready.loaded, captured)  # weights go into the artifact, zeros as well


@pytest.mark.parametrize("data", ["labelled.npz", "pairs"])
def test_a_built_in_metric_judges_too_from_a_file_and_from_a_function(folder, data):
    import numpy

    inputs = numpy.random.default_rng(0).normal(size=(24, 8)).astype("float32")
    numpy.savez(folder / "labelled.npz", input=inputs, labels=inputs[:, :4])
    events = preview(folder, PRUNE + f'[evaluate]\nmetric = "mse"\ndata = "{data}"\n')
    report = events[-1].report
    assert report.metric_before is not None and report.metric_after not in (None, report.metric_before)


def test_an_onnx_file_cannot_be_pruned():
    with pytest.raises(AceError) as caught:
        prepared(PRUNE, frontend="onnx")
    assert caught.value.problem.code is ErrorCode.UNSUPPORTED
