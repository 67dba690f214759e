"""One step of decoding with a language model of Hugging Face: the cache as plain tensors, in and out."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import torch
from torch import Tensor, nn

from ace_studio.engine.flow import Example

STEP_ENTRY = "step"
"""The entry that asks for it."""
_CONTEXTS = (4, 9)
"""Tokens before the step of each example: the length of the cache is free then."""


class CausalStep(nn.Module):
    """input_ids [1, 1], cache (keys, values [1, heads, t, size] per layer) -> logits [1, 1, words], cache of t + 1."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self._takes_places = "position_ids" in inspect.signature(model.forward).parameters

    def forward(
        self, input_ids: Tensor, cache: list[tuple[Tensor, Tensor]]
    ) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        """One token behind what the cache holds."""
        held = importlib.import_module("transformers.cache_utils").DynamicCache()
        for index, (keys, values) in enumerate(cache):
            held.update(keys, values, index)
        places = {}
        if self._takes_places:
            past = cache[0][0].shape[2]
            places["position_ids"] = torch.arange(past, past + 1, device=input_ids.device).unsqueeze(0)
        found = self.model(input_ids=input_ids, past_key_values=held, use_cache=True, **places)
        return found.logits, [(layer.keys, layer.values) for layer in held.layers]


def can_step(made: Any) -> bool:
    """Whether a class of transformers takes a cache and looks like a model of language."""
    parameters = inspect.signature(made.forward).parameters
    return "past_key_values" in parameters and ("CausalLM" in made.__name__ or "LMHead" in made.__name__)


def as_step(model: nn.Module) -> tuple[CausalStep, tuple[Example, ...]]:
    """The model as a step, and one example behind each of two contexts of made-up tokens.

    Raises: AttributeError or TypeError if it keeps its cache in another way.
    """
    words = int(model.config.vocab_size)  # type: ignore[union-attr,arg-type]
    tokens = torch.randint(0, words, (1, max(_CONTEXTS) + 1), generator=torch.Generator().manual_seed(0))
    examples = []
    with torch.no_grad():
        for length in _CONTEXTS:
            held = model(input_ids=tokens[:, :length], use_cache=True).past_key_values
            cache = [(layer.keys.clone(), layer.values.clone()) for layer in held.layers]
            examples.append(Example(kwargs={"input_ids": tokens[:, length : length + 1], "cache": cache}))
    return CausalStep(model).eval(), tuple(examples)
