"""Networks of timm, small variants."""

from collections.abc import Callable
from typing import Any

from torch import nn

from ace_studio.engine.load.torchvision.ops import make_importable
from tests.benchmarks.zoo.row import Row, image, square
from tests.benchmarks.zoo.torchvision_rows import BATCHES, MAPS

FAMILY = "timm"


def _timm(name: str, **options: Any) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        make_importable()  # timm imports it
        import timm

        return timm.create_model(name, pretrained=False, num_classes=10, **options)

    return build


_VIT: dict[str, Any] = {"embed_dim": 32, "depth": 2, "num_heads": 2}

ROWS = (
    Row("convnext_atto", FAMILY, _timm("convnext_atto"), image, *MAPS),
    Row("vit_tiny", FAMILY, _timm("vit_tiny_patch16_224", img_size=64, **_VIT), square, *BATCHES),
    Row(
        "vit_any_size", FAMILY, _timm("vit_tiny_patch16_224", img_size=64, dynamic_img_size=True, **_VIT), image, *MAPS
    ),
    Row(
        "swin",
        FAMILY,
        _timm(
            "swin_tiny_patch4_window7_224", img_size=64, window_size=4, embed_dim=24, depths=(2, 2), num_heads=(2, 4)
        ),
        square,
        *BATCHES,
    ),
    Row("maxvit", FAMILY, _timm("maxvit_rmlp_pico_rw_256", img_size=64), square, *BATCHES, cost=3),
    Row(  # at other sizes than multiples of 64 it resizes its maps: another path
        "mobilevitv2_050",
        FAMILY,
        _timm("mobilevitv2_050"),
        image,
        ((2, 64, 128), (3, 128, 64)),
        (4, 192, 128),
        cost=3,
    ),
    Row("tf_efficientnet_b0", FAMILY, _timm("tf_efficientnet_b0"), image, *MAPS, cost=3),
    Row("gmlp", FAMILY, _timm("gmlp_s16_224", img_size=64), square, *BATCHES),
    Row("cait", FAMILY, _timm("cait_xxs24_224", img_size=64, embed_dim=32, depth=2, num_heads=2), square, *BATCHES),
    Row("crossvit", FAMILY, _timm("crossvit_tiny_240"), lambda batch: square(batch, 240), *BATCHES, cost=2),
    Row("levit_128s", FAMILY, _timm("levit_128s"), lambda batch: square(batch, 224), *BATCHES, cost=2),
    Row("ghostnet_050", FAMILY, _timm("ghostnet_050"), image, *MAPS, cost=2),
    Row("regnetx_002", FAMILY, _timm("regnetx_002"), image, *MAPS),
    Row("nf_regnet_b0", FAMILY, _timm("nf_regnet_b0"), image, *MAPS, cost=2),
    Row("coat_lite_tiny", FAMILY, _timm("coat_lite_tiny", img_size=64), square, *BATCHES, cost=2),
    Row("repvgg_a0", FAMILY, _timm("repvgg_a0"), image, *MAPS),
    Row("mobilenetv4_small", FAMILY, _timm("mobilenetv4_conv_small"), image, *MAPS),
    Row("edgenext_xx_small", FAMILY, _timm("edgenext_xx_small"), image, *MAPS, cost=2),
    Row("poolformer_s12", FAMILY, _timm("poolformer_s12"), image, *MAPS, cost=2),
    Row("xcit", FAMILY, _timm("xcit_nano_12_p16_224", depth=2, embed_dim=32, num_heads=2), image, *MAPS),
)
