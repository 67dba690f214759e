"""torchvision imports beside any torch, and the operators that stand in for its library give what that gives."""

import importlib.util

import pytest
import torch

from ace_studio.engine.load import load_model, make_importable
from ace_studio.engine.load.torchvision.ops import is_standing_in
from ace_studio.engine.progress import Reporter
from ace_studio.records.recipes.recipe import ModelChoice, Recipe
from tests.engine.load.torchvision.test_kernels import nms_by_hand, random_boxes, seeded
from tests.engine.new_process import call_in_new_process

torchvision_is_here = importlib.util.find_spec("torchvision") is not None
needs_torchvision = pytest.mark.skipif(not torchvision_is_here, reason="torchvision is not installed")


@needs_torchvision
def test_torchvision_imports_and_its_operators_run_whether_or_not_its_library_loads():
    make_importable()
    import torchvision

    boxes, scores = random_boxes(30), torch.rand(30, generator=seeded(1))
    assert torchvision.ops.nms(boxes, scores, 0.3).tolist() == nms_by_hand(boxes, scores, 0.3)
    with torch.no_grad():
        detector = torchvision.models.detection.fasterrcnn_mobilenet_v3_large_320_fpn(
            weights=None, weights_backbone=None, num_classes=3, box_score_thresh=0.0
        ).eval()
        found = detector([torch.rand(3, 60, 80, generator=seeded())])
    assert found[0]["boxes"].shape[1] == 4


@needs_torchvision
def test_the_operators_can_be_traced():
    make_importable()
    from torchvision.ops import roi_align as of_torchvision

    class Pool(torch.nn.Module):
        def forward(self, features, rois):
            return of_torchvision(features, rois, (2, 2), 1.0, 2)

    example = (torch.randn(1, 2, 8, 8), torch.tensor([[0.0, 1.0, 1.0, 6.0, 5.0]]))
    program = torch.export.export(Pool(), example)

    assert "torchvision.roi_align.default" in {str(node.target) for node in program.graph.nodes}
    torch.testing.assert_close(program.module()(*example), Pool()(*example))


@needs_torchvision
def test_loading_a_model_of_torchvision_says_when_its_operators_are_replaced(tmp_path):
    (tmp_path / "m.py").write_text(
        "import torchvision\ndef make_model():\n    return torchvision.models.resnet18(weights=None)\n"
    )
    reporter = Reporter()
    recipe = Recipe(model=ModelChoice(source="m.py"))

    load_model(recipe, tmp_path, is_trusted=lambda sha256: True, reporter=reporter)

    codes = [warning.code for warning in reporter.warnings]
    assert codes.count("torchvision-library") == int(is_standing_in())


@pytest.mark.parametrize(("has_library", "said"), [(True, "False True"), (False, "True True")])
def test_operators_are_declared_only_where_the_library_does_not_load(tmp_path, has_library, said):
    package = tmp_path / "torchvision"
    package.mkdir()
    (package / "__init__.py").write_text("from torchvision import extension\n")
    (package / "extension.py").write_text(f"def _has_ops():\n    return {has_library}\n")

    told = call_in_new_process("tests.engine.load.torchvision.standing_in", "tell", str(tmp_path), folder=tmp_path)

    assert told.strip() == said
