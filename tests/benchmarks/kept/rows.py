"""The models kept aside: how each is made, what it learns, and its metric on labels that it has not seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ace_studio.engine.load.torchvision.ops import make_importable
from tests.benchmarks.kept import data
from tests.benchmarks.peers.row import PeerRow, Predict

CALIBRATION = 64
"""Examples for calibration, of those that were learnt from."""
HELD_OUT = 300
"""At most so many examples are judged, one at a time."""
THREADS = 2
"""For learning."""

Loss = Callable[[Any, Tensor], Tensor]
Metric = Callable[[list[Any], Tensor], float]


@dataclass(frozen=True)
class KeptModel:
    """One model kept aside."""

    build: Callable[[], nn.Module]
    data: Callable[[], tuple[data.Labelled, data.Labelled]]
    loss: Loss
    metric: Metric
    metric_name: str
    steps: int
    rate: float = 2e-3
    batch: int = 64
    is_transformer: bool = False


class Logits(nn.Module):
    """A model of Hugging Face as a plain function of one tensor: its field of that name."""

    def __init__(self, model: nn.Module, field: str = "logits") -> None:
        super().__init__()
        self.model, self.field = model, field

    def forward(self, given: Tensor) -> Tensor:
        found: Tensor = getattr(self.model(given), self.field)
        return found


class StripReader(nn.Module):
    """Convolutions, then two LSTM layers in both directions: strips [B, 1, 16, W] -> logits [B, W / 2, 11]."""

    def __init__(self, width: int = 96) -> None:
        super().__init__()
        self.front = nn.Sequential(
            nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d((2, 1)),
            nn.Conv2d(64, 96, 3, padding=1), nn.BatchNorm2d(96), nn.ReLU(), nn.MaxPool2d((4, 1)),
        )  # fmt: skip
        self.rnn = nn.LSTM(96, width, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(2 * width, 11)

    def forward(self, strip: Tensor) -> Tensor:
        features = self.front(strip).squeeze(2).transpose(1, 2)
        found: Tensor = self.head(self.rnn(features)[0])
        return found


# --- losses and metrics ---


def _ctc(logits: Tensor, wanted: Tensor) -> Tensor:
    count, steps = logits.shape[:2]
    lengths = [torch.full((count,), one) for one in (steps, wanted.shape[1])]
    return nn.functional.ctc_loss(logits.log_softmax(-1).transpose(0, 1), wanted + 1, *lengths)


def _characters(found: list[Tensor], wanted: Tensor) -> float:
    """1 - edit distance per character, of the best path."""
    wrong = 0
    for logits, digits in zip(found, wanted.tolist(), strict=True):
        path = logits[0].argmax(-1).unique_consecutive().tolist()
        wrong += _edits([one - 1 for one in path if one], digits)
    return 1 - wrong / wanted.numel()


def _edits(first: list[int], second: list[int]) -> int:
    row = list(range(len(second) + 1))
    for at, one in enumerate(first, 1):
        before, row[0] = row[0], at
        for to, other in enumerate(second, 1):
            before, row[to] = row[to], min(row[to] + 1, row[to - 1] + 1, before + (one != other))
    return row[-1]


def _accuracy(found: list[Tensor], wanted: Tensor) -> float:
    return float((torch.cat(found).argmax(1) == wanted).float().mean())


def _explained(found: list[Tensor], wanted: Tensor) -> float:
    """R squared: the share of the variance that is foretold."""
    return 1 - float((torch.cat(found) - wanted).square().sum() / (wanted - wanted.mean((0, 1))).square().sum())


def _full_size(logits: Tensor) -> Tensor:
    return nn.functional.interpolate(logits, size=(64, 64), mode="bilinear")


def _per_pixel(logits: Tensor, wanted: Tensor) -> Tensor:
    return nn.functional.cross_entropy(_full_size(logits), wanted)


def _overlap(found: list[Tensor], wanted: Tensor) -> float:
    """Intersection over union of the strokes, all scenes together."""
    strokes, wanted = _full_size(torch.cat(found)).argmax(1).bool(), wanted.bool()
    return float((strokes & wanted).sum() / (strokes | wanted).sum())


# --- models ---


def _timm(name: str, **options: Any) -> nn.Module:
    import timm

    return timm.create_model(name, pretrained=False, num_classes=10, **options)


def _convmixer() -> nn.Module:
    from timm.models.convmixer import ConvMixer

    return ConvMixer(dim=64, depth=6, kernel_size=5, patch_size=2, num_classes=10)


def _mixer() -> nn.Module:
    from timm.models.mlp_mixer import MlpMixer

    return MlpMixer(num_classes=10, img_size=32, patch_size=4, num_blocks=6, embed_dim=128)


def _convit() -> nn.Module:
    from timm.models.convit import ConVit

    return ConVit(img_size=32, patch_size=4, num_classes=10, embed_dim=96, depth=5, num_heads=4, local_up_to_layer=3)


def _sequencer() -> nn.Module:
    from timm.models.sequencer import Sequencer2d

    sizes: dict[str, Any] = {"embed_dims": (32, 64, 64, 64), "hidden_sizes": (16, 32, 32, 32)}
    return Sequencer2d(num_classes=10, img_size=28, layers=(1, 1, 1, 1), **sizes)


def _visformer() -> nn.Module:
    return _timm("visformer_tiny", img_size=32, embed_dim=96, num_heads=3, init_channels=16, depth=(2, 2, 2))


_ENCODER: dict[str, Any] = {
    "vocab_size": data.WORDS,
    "hidden_size": 128,
    "embedding_size": 128,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 256,
    "max_position_embeddings": 64,
    "num_labels": len(data.MODULES),
    "pad_token_id": 0,
}


def _text(family: str) -> nn.Module:
    import transformers

    config = getattr(transformers, f"{family}Config")(**_ENCODER)
    return Logits(getattr(transformers, f"{family}ForSequenceClassification")(config))


def _patchtst() -> nn.Module:
    from transformers import PatchTSTConfig, PatchTSTForPrediction

    config = PatchTSTConfig(
        num_input_channels=3, context_length=data.CONTEXT, prediction_length=data.AHEAD, patch_length=8, patch_stride=8,
        num_hidden_layers=3, d_model=64, num_attention_heads=4, ffn_dim=128, loss="mse", scaling="std",
    )  # fmt: skip
    return Logits(PatchTSTForPrediction(config), "prediction_outputs")


def _strokes() -> nn.Module:
    from transformers import MobileNetV2Config, MobileNetV2ForSemanticSegmentation

    config = MobileNetV2Config(
        num_labels=2, image_size=64, depth_multiplier=0.5, output_stride=8, classifier_dropout_prob=0.1
    )
    return Logits(MobileNetV2ForSemanticSegmentation(config))


_cross_entropy: Loss = nn.functional.cross_entropy


def _of_digits(build: Callable[[], nn.Module], size: int, steps: int, **options: Any) -> KeptModel:
    return KeptModel(build, lambda: data.digits(size), _cross_entropy, _accuracy, "accuracy", steps, **options)


def _of_sources(family: str, steps: int) -> KeptModel:
    return KeptModel(
        lambda: _text(family), data.sources, _cross_entropy, _accuracy, "accuracy", steps, 1e-3, 32, is_transformer=True
    )


KEPT: dict[str, KeptModel] = {
    "mobileone_s0": _of_digits(lambda: _timm("mobileone_s0"), 32, 300),
    "starnet_s1": _of_digits(lambda: _timm("starnet_s1"), 32, 150),
    "visformer": _of_digits(_visformer, 32, 250),
    "convit": _of_digits(_convit, 32, 250, rate=1e-3, is_transformer=True),
    "convmixer": _of_digits(_convmixer, 32, 120),
    "mlp_mixer": _of_digits(_mixer, 32, 250, rate=1e-3),
    "sequencer": _of_digits(_sequencer, 28, 150),
    "strip_reader": KeptModel(StripReader, data.strips, _ctc, _characters, "characters right", 260),
    "roformer": _of_sources("RoFormer", 500),
    "convbert": _of_sources("ConvBert", 400),
    "patchtst": KeptModel(
        _patchtst, data.lines, nn.functional.mse_loss, _explained, "R squared", 400, 1e-3, is_transformer=True
    ),
    "mobilenet_strokes": KeptModel(_strokes, data.scenes, _per_pixel, _overlap, "IoU", 150, batch=32),
}
"""Families: re-parametrized and star CNN, hybrid, ViT, conv and MLP mixer, recurrent (2), text (2), series, dense."""


def learn(kept: KeptModel, learnt: data.Labelled) -> nn.Module:
    """The trained module, the same on every run of one machine."""
    torch.manual_seed(0)
    module = kept.build().train()
    optimizer = torch.optim.AdamW(module.parameters(), lr=kept.rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=kept.rate, total_steps=kept.steps)
    generator = torch.Generator().manual_seed(0)
    inputs, labels = learnt
    for _ in range(kept.steps):
        chosen = torch.randint(0, len(inputs), (kept.batch,), generator=generator)
        loss = kept.loss(module(inputs[chosen]), labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(module.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    return module.eval()


def kept_row(name: str, work: Path) -> PeerRow:
    """The model of that name, trained now or taken from ``work``, with its data as one example each."""
    make_importable()
    kept = KEPT[name]
    learnt, (inputs, labels) = kept.data()
    file = work / f"{name}.pt"
    if file.exists():
        module = torch.load(file, weights_only=False)  # noqa: TID251 - written below
    else:
        torch.set_num_threads(THREADS)
        module = learn(kept, learnt)
        torch.save(module, file)
    torch.set_num_threads(1)
    spread = torch.linspace(0, len(inputs) - 1, min(HELD_OUT, len(inputs))).long()
    inputs, labels = inputs[spread], labels[spread]
    calls = [(one[None].contiguous(),) for one in inputs]

    def score(predict: Predict) -> float:
        with torch.no_grad():
            return kept.metric([predict(*call) for call in calls], labels)

    places = torch.linspace(0, len(learnt[0]) - 1, CALIBRATION).long()
    calibration = [(one[None].contiguous(),) for one in learnt[0][places]]
    return PeerRow(
        name, module, calibration, calls[:8], is_transformer=kept.is_transformer, score=score, tracing=calls[:2]
    )
