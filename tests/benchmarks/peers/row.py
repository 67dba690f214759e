"""One model of the comparison: how it is made, what it is calibrated and judged with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from ace_studio.engine.load.torchvision.ops import make_importable
from tests.benchmarks.model_files import load_file

Inputs = tuple[Tensor, ...]
Predict = Callable[..., Any]


@dataclass(frozen=True)
class PeerRow:
    """A model with everything that a comparison needs. All inputs have the shapes of the first."""

    name: str
    module: nn.Module
    calibration: Sequence[Inputs]
    held_out: Sequence[Inputs]
    """What fidelity is measured on; the first one is what is timed."""
    is_transformer: bool = False
    score: Callable[[Predict], float] | None = None
    """The model's own metric on real labels, higher is better."""
    tracing: Sequence[Inputs] = ()
    """Examples for a model whose metric calls it at other sizes; the held-out inputs otherwise."""


def _pictures(count: int, seed: int) -> list[Inputs]:
    generator = torch.Generator().manual_seed(seed)
    smooth = nn.Upsample(224, mode="bilinear")
    return [(smooth(torch.randn(1, 3, 28, 28, generator=generator)),) for _ in range(count)]


def _tokens(count: int, batch: int, length: int, words: int, seed: int) -> list[Inputs]:
    generator = torch.Generator().manual_seed(seed)
    return [(torch.randint(0, words, (batch, length), generator=generator),) for _ in range(count)]


def settled(module: nn.Module, calls: Sequence[Inputs]) -> nn.Module:
    """The module with batch norms that have seen data: random weights else give values that no real network has."""
    torch.manual_seed(0)
    module.train()
    with torch.no_grad():
        for call in calls:
            module(*(torch.cat([value] * 2) for value in call))
    return module.eval()


def _torchvision(name: str) -> PeerRow:
    make_importable()
    from torchvision import models

    torch.manual_seed(0)
    module = settled(getattr(models, name)(weights=None), _pictures(20, seed=1))
    return PeerRow(name, module, _pictures(16, seed=2), _pictures(6, seed=3))


class _FirstOutput(nn.Module):
    """A model of Hugging Face as a plain function of its tokens."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor) -> Tensor:
        return self.model(input_ids=input_ids).last_hidden_state


class _Logits(nn.Module):
    """A model of Hugging Face that reads sound, as a plain function of its samples."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_values: Tensor) -> Tensor:
        return self.model(input_values).last_hidden_state


def _sound(count: int, seed: int) -> list[Inputs]:
    """Sums of slow waves: one second at 16 kHz each."""
    generator = torch.Generator().manual_seed(seed)
    smooth = nn.Upsample(16000, mode="linear")
    return [(smooth(torch.randn(1, 1, 4000, generator=generator))[0],) for _ in range(count)]


def _timm(name: str) -> PeerRow:
    make_importable()
    import timm

    torch.manual_seed(0)
    module = timm.create_model(name, pretrained=False).eval()
    return PeerRow(name, module, _pictures(16, seed=2), _pictures(6, seed=3), is_transformer=name.startswith("vit"))


def _plain(module: nn.Module) -> nn.Module:
    """The module with its weight norms computed: tools save whole modules, and torch refuses parametrized ones."""
    for one in module.modules():
        if parametrize.is_parametrized(one):
            for name in list(one.parametrizations):
                parametrize.remove_parametrizations(one, name)
            one._load_state_dict_pre_hooks.clear()  # a local function of weight_norm, which pickle refuses
    return module


def _wav2vec2() -> PeerRow:
    make_importable()
    from transformers import Wav2Vec2Config, Wav2Vec2Model

    torch.manual_seed(0)
    module = _plain(_Logits(Wav2Vec2Model(Wav2Vec2Config())).eval())
    return PeerRow("wav2vec2_base", module, _sound(8, 2), _sound(4, 3), is_transformer=True)


def _conformer() -> PeerRow:
    make_importable()
    from transformers import Wav2Vec2ConformerConfig, Wav2Vec2ConformerModel

    torch.manual_seed(0)
    sizes = {"hidden_size": 256, "num_attention_heads": 4, "num_hidden_layers": 12, "intermediate_size": 1024}
    module = _plain(_Logits(Wav2Vec2ConformerModel(Wav2Vec2ConformerConfig(**sizes))).eval())
    return PeerRow("conformer", settled(module, _sound(8, 1)), _sound(8, 2), _sound(4, 3), is_transformer=True)


class UNet(nn.Module):
    """Four levels down and up with skips (Ronneberger et al. 2015, arXiv:1505.04597), 7.8 million weights.

    Shapes: [N, 3, H, W] -> [N, 2, H, W]; H and W are multiples of 16.
    """

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        sizes = [width << level for level in range(5)]
        self.down = nn.ModuleList(self._pair(before, after) for before, after in zip([3, *sizes], sizes, strict=False))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * size, size, 2, 2) for size in reversed(sizes[:-1]))
        self.join = nn.ModuleList(self._pair(2 * size, size) for size in reversed(sizes[:-1]))
        self.head = nn.Conv2d(width, 2, 1)

    @staticmethod
    def _pair(before: int, after: int) -> nn.Sequential:
        layers: list[nn.Module] = []
        for channels in (before, after):
            layers += [nn.Conv2d(channels, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
        return nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        skips = []
        for level, block in enumerate(self.down):
            x = block(x if level == 0 else nn.functional.max_pool2d(x, 2))
            skips.append(x)
        skips.pop()
        for up, join in zip(self.up, self.join, strict=True):
            x = join(torch.cat([skips.pop(), up(x)], dim=1))
        return self.head(x)


def _unet() -> PeerRow:
    torch.manual_seed(0)
    return PeerRow("unet", settled(UNet(), _pictures(8, seed=1)), _pictures(8, seed=2), _pictures(4, seed=3))


def _bert_base() -> PeerRow:
    make_importable()
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    module = _FirstOutput(BertModel(BertConfig(), add_pooling_layer=False)).eval()
    make = lambda count, seed: _tokens(count, 1, 64, 30000, seed)  # noqa: E731 - said twice below
    return PeerRow("bert_base", module, make(8, 2), make(4, 3), is_transformer=True)


class DecoderStep(nn.Module):
    """One token of a decoder with 10 layers of width 768, and what it remembers: about 120 million weights.

    Shapes: token [B, 1], past [layers, 2, B, heads, T, width / heads] -> logits [B, words], past with T + 1.
    """

    def __init__(self, words: int = 32000, width: int = 768, heads: int = 12, layers: int = 10) -> None:
        super().__init__()
        self.heads = heads
        self.embed = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(
            nn.ModuleDict(
                {
                    "norm": nn.LayerNorm(width),
                    "mix": nn.Linear(width, 3 * width),
                    "out": nn.Linear(width, width),
                    "norm2": nn.LayerNorm(width),
                    "up": nn.Linear(width, 4 * width),
                    "down": nn.Linear(4 * width, width),
                }
            )
            for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, token: Tensor, past: Tensor) -> tuple[Tensor, Tensor]:
        x, kept = self.embed(token), []
        for number, block in enumerate(self.blocks):
            query, key, value = (
                part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
                for part in block["mix"](block["norm"](x)).chunk(3, -1)
            )
            key, value = torch.cat([past[number, 0], key], 2), torch.cat([past[number, 1], value], 2)
            kept.append(torch.stack([key, value]))
            mixed = nn.functional.scaled_dot_product_attention(query, key, value)
            x = x + block["out"](mixed.transpose(1, 2).flatten(2))
            x = x + block["down"](nn.functional.gelu(block["up"](block["norm2"](x))))
        return self.head(self.norm(x))[:, -1], torch.stack(kept)


def decoder_calls(module: nn.Module, count: int, seed: int) -> list[Inputs]:
    """Tokens after 16 others, with what `DecoderStep` remembers of these."""
    made: list[Inputs] = []
    with torch.no_grad():
        for (tokens,) in _tokens(count, 1, 17, 32000, seed):
            past = torch.zeros(10, 2, 1, 12, 0, 64)
            for at in range(16):
                _, past = module(tokens[:, at : at + 1], past)
            made.append((tokens[:, 16:], past))
    return made


def _decoder() -> PeerRow:
    torch.manual_seed(0)
    module = DecoderStep().eval()
    calibration, held_out = decoder_calls(module, 6, 2), decoder_calls(module, 3, 3)
    return PeerRow("decoder_step", module, calibration, held_out, is_transformer=True)


def _given(name: str, folder: Path) -> PeerRow:
    """A trained model of a folder: ``NAME.py`` with ``load``, ``calibration`` and ``score``."""
    given = load_file(folder / f"{name}.py")
    module, tracing = given.load()
    calibration = [tuple(call) for call in given.calibration()]
    return PeerRow(
        name,
        module.eval(),
        calibration,
        [tuple(call) for call in tracing],
        is_transformer=name == "wordsim",
        score=given.score,
        tracing=[tuple(call) for call in tracing],
    )


MADE: dict[str, Callable[[], PeerRow]] = {
    "mobilenet_v2": lambda: _torchvision("mobilenet_v2"),
    "resnet50": lambda: _torchvision("resnet50"),
    "vit_small": lambda: replace(_timm("vit_small_patch16_224"), name="vit_small"),
    "convnext_tiny": lambda: _timm("convnext_tiny"),
    "bert_base": _bert_base,
    "wav2vec2_base": _wav2vec2,
    "conformer": _conformer,
    "unet": _unet,
    "decoder_step": _decoder,
}
"""Rows with random weights."""
GIVEN = ("vad", "pitch", "wordsim")
"""Rows with trained weights and real labels, from a folder that the caller names."""


def make_row(name: str, models: Path | None) -> PeerRow:
    """The row of a name. Raises: ValueError if it needs a folder of models and there is none."""
    if name in MADE:
        return MADE[name]()
    if models is None:
        raise ValueError(f"{name} needs --models FOLDER with {name}.py")
    return _given(name, models)


def model_file(name: str, models: Path | None) -> str:
    """The file with the classes of a given model; empty for one that is made here."""
    return "" if name in MADE or models is None else str((models / f"{name}.py").absolute())
