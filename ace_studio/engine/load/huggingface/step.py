"""One decoding step of a Hugging Face language model, with the cache as plain input and output tensors."""

import importlib
import inspect
from typing import Any

import torch
from torch import Tensor, nn

from ace_studio.engine.flow import Example

STEP_ENTRY = "step"
"""The recipe's entry for it."""
_CONTEXTS = (4, 9)
"""Cache lengths of the two examples; they differ so that the length becomes dynamic."""


class CausalStep(nn.Module):
    """input_ids [1, 1], cache (keys, values [1, heads, t, size] per layer) -> logits [1, 1, words], cache of t + 1."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self._takes_positions = "position_ids" in inspect.signature(model.forward).parameters

    def forward(
        self, input_ids: Tensor, cache: list[tuple[Tensor, Tensor]]
    ) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        """Decode one token after those in the cache."""
        past = importlib.import_module("transformers.cache_utils").DynamicCache()
        for index, (keys, values) in enumerate(cache):
            past.update(keys, values, index)
        positions = {}
        if self._takes_positions:
            length = cache[0][0].shape[2]
            positions["position_ids"] = torch.arange(length, length + 1, device=input_ids.device).unsqueeze(0)
        output = self.model(input_ids=input_ids, past_key_values=past, use_cache=True, **positions)
        return output.logits, [(layer.keys, layer.values) for layer in past.layers]


def can_step(made: Any) -> bool:
    """Whether a class of transformers takes a cache and is named like a causal language model."""
    parameters = inspect.signature(made.forward).parameters
    return "past_key_values" in parameters and ("CausalLM" in made.__name__ or "LMHead" in made.__name__)


def as_step(model: nn.Module) -> tuple[CausalStep, tuple[Example, ...]]:
    """Wrap the model as a step, with one example after each of two contexts of random tokens.

    Raises: AttributeError or TypeError if its cache has another form.
    """
    vocabulary = int(model.config.vocab_size)  # type: ignore[union-attr,arg-type]
    tokens = torch.randint(0, vocabulary, (1, max(_CONTEXTS) + 1), generator=torch.Generator().manual_seed(0))
    examples = []
    with torch.no_grad():
        for length in _CONTEXTS:
            past = model(input_ids=tokens[:, :length], use_cache=True).past_key_values
            cache = [(layer.keys.clone(), layer.values.clone()) for layer in past.layers]
            examples.append(Example(kwargs={"input_ids": tokens[:, length : length + 1], "cache": cache}))
    return CausalStep(model).eval(), tuple(examples)
