"""One step of decoding, with the cache as tensors."""

import torch

from ace_studio.engine.load import inspect_file
from ace_studio.records.errors import ErrorCode
from tests.engine.load.huggingface.folders import SMALL
from tests.engine.load.samples import load, problem_of


def llama(transformers, folder):
    config = transformers.LlamaConfig(vocab_size=50, num_key_value_heads=1, max_position_embeddings=64, **SMALL)
    transformers.LlamaForCausalLM(config).save_pretrained(folder)


def test_a_language_model_opens_as_one_step_that_continues_what_its_cache_holds(transformers, tmp_path):
    llama(transformers, tmp_path / "lm")
    whole = load(tmp_path, "lm", trusted=False).module
    step = load(tmp_path, "lm", entry="step", trusted=False)
    lengths = [example.kwargs["cache"][0][0].shape[2] for example in step.data.examples]
    assert len(set(lengths)) == 2
    text = torch.randint(0, 50, (1, 12))
    with torch.no_grad():
        expected = whole(text)
        expected = expected.logits if hasattr(expected, "logits") else expected[0]
        held = step.module.model(input_ids=text[:, :4], use_cache=True).past_key_values
        cache = [(layer.keys, layer.values) for layer in held.layers]
        for at in range(4, 12):
            scores, cache = step.module(text[:, at : at + 1], cache)
    assert cache[0][0].shape[2] == 12
    assert torch.allclose(scores[:, -1], expected[:, -1], atol=1e-5)


def test_the_step_is_offered_where_there_is_one_and_refused_elsewhere(transformers, bert, tmp_path):
    llama(transformers, tmp_path / "lm")
    assert "step" in [entry.name for entry in inspect_file(tmp_path / "lm").entries]
    assert "step" not in [entry.name for entry in inspect_file(bert).entries]
    problem = problem_of(bert.parent, "bert", entry="step", trusted=False)
    assert problem.code is ErrorCode.UNSUPPORTED
    assert "no causal language model" in problem.why
