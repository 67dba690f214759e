"""A decoder step on a target: captured with a free cache length, quantized weights, really decoding."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - the name that the whole field uses
from torch import Tensor, nn

import ace_studio
from ace_studio.engine.targets.torch.eager import EagerTarget
from ace_studio.records.errors import AceError, ExitCode
from ace_studio.records.results import RunStatus


class DecoderLayer(nn.Module):
    """x [b, 1, width], keys and values [b, heads, t, size] -> x, keys and values of t + 1."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        b, _, width = x.shape
        q, k, v = self.qkv(self.norm_1(x)).view(b, 1, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        keys, values = torch.cat([keys, k], dim=2), torch.cat([values, v], dim=2)
        mixed = F.scaled_dot_product_attention(q, keys, values)
        x = x + self.out(mixed.transpose(1, 2).reshape(b, 1, width))
        return x + self.down(F.gelu(self.up(self.norm_2(x)))), keys, values


class StepDecoder(nn.Module):
    """token [b, 1], position [b, 1], cache (one pair per layer) -> scores [b, 1, vocabulary], longer cache."""

    def __init__(self, *, vocabulary: int, width: int, heads: int, layers: int, longest: int = 512) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(longest, width)
        self.layers = nn.ModuleList(DecoderLayer(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(
        self, token: Tensor, position: Tensor, cache: list[tuple[Tensor, Tensor]]
    ) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        x = self.words(token) + self.places(position)
        grown = []
        for layer, held in zip(self.layers, cache, strict=True):
            x, *longer = layer(x, *held)
            grown.append(tuple(longer))
        return self.head(self.norm(x)), grown


def step_decoder(
    *, vocabulary: int = 61, width: int = 64, heads: int = 4, layers: int = 2, lengths: tuple[int, ...] = (4, 9)
) -> tuple[StepDecoder, list[dict[str, Any]]]:
    """The module and one example per length of the cache."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = StepDecoder(vocabulary=vocabulary, width=width, heads=heads, layers=layers).eval()
        examples = [
            {
                "token": torch.randint(0, vocabulary, (1, 1)),
                "position": torch.tensor([[length]]),
                "cache": [
                    (torch.randn(1, heads, length, width // heads), torch.randn(1, heads, length, width // heads))
                    for _ in range(layers)
                ],
            }
            for length in lengths
        ]
    return module, examples


torch.set_num_threads(1)
DECODE = {"token": "token", "logits": "0", "feed": {"cache": "1"}, "position": "position", "tokens": 12}


@pytest.mark.parametrize(
    ("precision", "target"),
    [("int8-weight", "onnxruntime"), pytest.param("int4-weight", "openvino", marks=pytest.mark.slow)],
)
def test_a_step_decodes_with_quantized_weights(precision: str, target: str) -> None:
    pytest.importorskip(target)
    module, examples = step_decoder(width=32, lengths=(2, 5))
    texts = [(torch.randint(0, 61, (1, 6), generator=torch.Generator().manual_seed(seed)),) for seed in range(3)]
    report = ace_studio.compile(
        module,
        tracing_inputs=examples,
        target=target,
        default=precision,
        metric="perplexity",
        evaluation_data=texts,
        decode=DECODE,
        rounds=2,
    ).report
    base, (run,) = report.baseline, report.runs
    assert run.status is RunStatus.OK, run.error
    assert base.decode.tokens == run.decode.tokens == 12
    assert base.decode.same_tokens == 1.0
    assert run.tokens_per_s == run.decode.tokens_per_s > 0
    assert precision in {op.actual for op in run.ops}
    assert base.samples == 3
    assert run.metric == pytest.approx(base.metric, rel=0.2)
    assert report.baseline.profile.timed_ops > 20
    assert run.profile.timed_ops > 5


def test_what_the_recipe_names_must_be_there_before_anything_is_built(monkeypatch) -> None:
    monkeypatch.setattr(EagerTarget, "build", lambda *_: pytest.fail("it was built"))
    module, examples = step_decoder(width=32, layers=1, lengths=(2, 3))
    with pytest.raises(AceError) as caught:
        ace_studio.compile(
            module,
            tracing_inputs=examples,
            target="eager",
            default="fp32",
            decode={**DECODE, "feed": {"past": "1"}},
            rounds=1,
        )
    assert "no input 'past'" in caught.value.problem.what
    assert caught.value.problem.exit_code is ExitCode.USAGE
