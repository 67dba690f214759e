"""A capture from the cache lowers to the same artifact as the one that was traced."""

from pathlib import Path

import pytest
import torch

from ace_studio.engine.capture import capture_model
from ace_studio.engine.flow import CapturedModel, Example, LoadedModel
from ace_studio.engine.progress import Reporter
from ace_studio.engine.targets import TARGETS
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.recipes.recipe import CaptureChoice, Recipe
from tests import tiny_models
from tests.engine.targets.conftest import bound, make_job


def captured(is_cached: bool) -> CapturedModel:
    torch.manual_seed(0)
    tiny = tiny_models.conv_net()
    loaded = LoadedModel(module=tiny.module, source=Path(), sha256="a file")
    examples = [Example.of(example) for example in tiny.examples]
    recipe = Recipe(capture=CaptureChoice(rungs=("export",)))
    found, report = capture_model(loaded, examples, recipe, device=torch.device("cpu"), reporter=Reporter())
    assert report.cached is is_cached
    assert isinstance(found, CapturedModel)
    return found


@pytest.mark.parametrize(
    ("target", "precision"), [("onnxruntime", Precision.INT8_STATIC), ("eager", Precision.INT8_STATIC)]
)
def test_what_is_built_from_the_cache_is_what_is_built_from_a_trace(
    target: str, precision: Precision, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not TARGETS[target].available().ok:
        pytest.skip(f"no {target} here")
    monkeypatch.setenv("ACE_STUDIO_CACHE", str(tmp_path / "captures"))
    outputs, read_backs, files = [], [], []
    for is_cached in (False, True):
        model = captured(is_cached)
        folder = tmp_path / str(is_cached)
        folder.mkdir()
        lowered = TARGETS[target].lower(make_job(model, bound(target, model, precision), folder))
        with torch.no_grad():
            outputs.append([example.copied().call(lowered) for example in model.examples])
        read_backs.append([(one.op_id, one.actual) for one in lowered.read_back()])
        files.append(lowered.save(folder))
    torch.testing.assert_close(outputs[0], outputs[1], rtol=0, atol=0)
    assert read_backs[0] == read_backs[1]
    if files[0].suffix == ".onnx":
        assert files[0].read_bytes() == files[1].read_bytes()
