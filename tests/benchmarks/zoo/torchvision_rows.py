"""Networks of torchvision: classification, segmentation, detection, video, optical flow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from ace_studio.engine.load.torchvision.ops import make_importable
from tests.benchmarks.zoo.row import Row, Sizes, features, image, square

FAMILY = "torchvision"
MAPS: tuple[tuple[Sizes, ...], Sizes] = (((2, 64, 96), (3, 96, 64)), (4, 128, 96))
LARGER_MAPS: tuple[tuple[Sizes, ...], Sizes] = (((2, 96, 128), (3, 128, 96)), (4, 160, 128))
BATCHES: tuple[tuple[Sizes, ...], Sizes] = (((2,), (3,)), (5,))


def detection_images(height: int, width: int) -> tuple[list[Tensor]]:
    """Two images of different sizes, as detection models of torchvision take them."""
    return ([image(1, height, width)[0][0], image(1, width, height)[0][0]],)


def pair_of_images(batch: int, height: int, width: int) -> tuple[Tensor, Tensor]:
    """Two frames [batch, 3, height, width] in [-1, 1]."""
    first = image(batch, height, width)[0] * 2 - 1
    return (first, first.roll(3, dims=3))


def video(batch: int, frames: int, side: int) -> tuple[Tensor]:
    """x [batch, 3, frames, side, side]."""
    return features(batch, 3, frames, side, side)


def _classifier(name: str, **options: Any) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        make_importable()
        from torchvision import models

        return models.get_model(name, weights=None, num_classes=10, **options)

    return build


def _dense(name: str, **options: Any) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        make_importable()
        from torchvision import models

        return models.get_model(name, weights=None, weights_backbone=None, num_classes=5, **options)

    return build


def _vit() -> nn.Module:
    make_importable()
    from torchvision.models import VisionTransformer

    return VisionTransformer(
        image_size=64, patch_size=16, num_layers=2, num_heads=2, hidden_dim=32, mlp_dim=64, num_classes=10
    )


def _swin(*, version: int) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        make_importable()
        from torchvision.models import SwinTransformer
        from torchvision.models.swin_transformer import PatchMergingV2, SwinTransformerBlockV2

        later: dict[str, Any] = {"block": SwinTransformerBlockV2, "downsample_layer": PatchMergingV2}
        return SwinTransformer(
            patch_size=[4, 4],
            embed_dim=24,
            depths=[2, 2],
            num_heads=[2, 4],
            window_size=[4, 4],
            num_classes=10,
            **(later if version == 2 else {}),
        )

    return build


def _maxvit() -> nn.Module:
    make_importable()
    from torchvision.models import MaxVit

    return MaxVit(
        input_size=(64, 64),
        stem_channels=16,
        partition_size=4,
        block_channels=[16, 32],
        block_layers=[1, 1],
        head_dim=8,
        stochastic_depth_prob=0.0,
        num_classes=10,
    )


def _raft() -> nn.Module:
    make_importable()
    from torchvision.models.optical_flow import raft_small

    class Flow(nn.Module):
        """The last of the flow fields, which is the answer."""

        def __init__(self) -> None:
            super().__init__()
            self.raft = raft_small(weights=None)

        def forward(self, first: Tensor, second: Tensor) -> Tensor:
            return self.raft(first, second, num_flow_updates=2)[-1]

    return Flow()


def faster_rcnn() -> nn.Module:
    """Faster R-CNN over MobileNetV3, with a threshold that lets random weights find something."""
    return _dense(
        "fasterrcnn_mobilenet_v3_large_320_fpn",
        min_size=96,
        max_size=160,
        box_score_thresh=0.1,
        rpn_post_nms_top_n_test=60,
        box_detections_per_img=20,
    )()


def ssdlite() -> nn.Module:
    """SSDlite over MobileNetV3."""
    return _dense("ssdlite320_mobilenet_v3_large", score_thresh=0.1, topk_candidates=100)()


def retinanet() -> nn.Module:
    """RetinaNet over ResNet50."""
    return _dense("retinanet_resnet50_fpn", min_size=96, max_size=160, score_thresh=0.005, topk_candidates=100)()


ROWS = (
    Row("resnet18", FAMILY, _classifier("resnet18"), image, *MAPS),
    Row("resnet50", FAMILY, _classifier("resnet50"), image, *MAPS, cost=2),
    Row("squeezenet1_1", FAMILY, _classifier("squeezenet1_1"), image, *MAPS),
    Row("mobilenet_v2", FAMILY, _classifier("mobilenet_v2"), image, *MAPS),
    Row("mobilenet_v3_small", FAMILY, _classifier("mobilenet_v3_small"), image, *MAPS, cost=2),
    Row("shufflenet_v2", FAMILY, _classifier("shufflenet_v2_x0_5"), image, *MAPS),
    Row("mnasnet0_5", FAMILY, _classifier("mnasnet0_5"), image, *MAPS),
    Row("densenet121", FAMILY, _classifier("densenet121"), image, *MAPS, cost=2),
    Row("efficientnet_b0", FAMILY, _classifier("efficientnet_b0"), image, *MAPS, cost=2),
    Row("regnet_y_400mf", FAMILY, _classifier("regnet_y_400mf"), image, *MAPS),
    Row("googlenet", FAMILY, _classifier("googlenet", init_weights=False, aux_logits=False), image, *MAPS),
    Row("convnext_tiny", FAMILY, _classifier("convnext_tiny"), image, *MAPS, cost=2),
    Row("torchvision_vit", FAMILY, _vit, square, *BATCHES),
    Row("torchvision_swin", FAMILY, _swin(version=1), image, *MAPS),
    Row("torchvision_swin_v2", FAMILY, _swin(version=2), square, *BATCHES),
    Row("torchvision_maxvit", FAMILY, _maxvit, square, *BATCHES),
    Row("deeplabv3_mobilenet", FAMILY, _dense("deeplabv3_mobilenet_v3_large"), image, *LARGER_MAPS, cost=2),
    Row("fcn_resnet50", FAMILY, _dense("fcn_resnet50"), image, *MAPS, cost=2),
    Row("lraspp_mobilenet", FAMILY, _dense("lraspp_mobilenet_v3_large"), image, *MAPS, cost=2),
    Row("fasterrcnn_mobilenet", FAMILY, faster_rcnn, detection_images, ((96, 128), (128, 112)), (112, 144), cost=3),
    Row("ssdlite320", FAMILY, ssdlite, detection_images, ((96, 128), (128, 112)), (112, 144), cost=3),
    Row("retinanet_resnet50", FAMILY, retinanet, detection_images, ((96, 128), (128, 112)), (112, 144), cost=3),
    Row("r3d_18", FAMILY, _classifier("r3d_18"), video, ((1, 4, 32), (2, 6, 48)), (3, 8, 40), cost=2),
    Row("raft_small", FAMILY, _raft, pair_of_images, ((1, 128, 136), (2, 144, 128)), (3, 136, 152), cost=3),
)
