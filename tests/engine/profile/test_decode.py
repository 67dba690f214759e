"""Decoding with a step model: the cache is fed back, the tokens are those of the whole text, misfits are said."""

import pytest
import torch
from torch import nn

from ace_studio.engine.flow import Example
from ace_studio.engine.profile.decode import StepModel, decode, decode_report, read_text
from ace_studio.records.errors import AceError
from ace_studio.records.recipes.recipe import DecodeChoice


class Adds(nn.Module):
    """The next token is the sum of all tokens so far, modulo 7; the cache is the list of tokens."""

    def forward(self, token, cache, mask, position):
        seen = torch.cat([cache, token.float().reshape(1, -1)], dim=1)
        assert seen.shape[1] == mask.shape[1] == int(position) + 1
        following = int(seen.sum()) % 7
        return {"logits": torch.eye(7)[following].reshape(1, 1, 7), "cache": seen}


START = Example.of(
    {
        "token": torch.tensor([[3]]),
        "cache": torch.tensor([[1.0]]),
        "mask": torch.ones(1, 2),
        "position": torch.tensor(1),
    }
)
NAMES = ["token", "cache", "mask", "position"]
CHOICE = DecodeChoice(token="token", logits="logits", feed={"cache": "cache"}, mask="mask", position="position")


def step(choice: DecodeChoice = CHOICE) -> StepModel:
    return StepModel.of(choice, START, NAMES, START.copied().call(Adds()))


def test_every_token_is_chosen_with_everything_before_it_in_the_cache():
    tokens, seconds = decode(Adds(), step(), tokens=5)
    seen, expected = [1, 3], []
    for _ in range(5):
        expected.append(sum(seen) % 7)
        seen.append(expected[-1])
    assert tokens == expected
    assert seconds > 0


def test_a_text_is_fed_token_by_token():
    scores = read_text(Adds(), step(), torch.tensor([[2, 5, 6]]))
    assert scores.shape == (1, 3, 7)
    assert scores.argmax(-1).tolist() == [[3, 1, 0]]


def test_agreement_ends_at_the_first_difference():
    report = decode_report([1, 2, 3, 4], [1, 2, 0, 4], [0.5, 1.0, 0.25], 2)
    assert report.same_tokens == 0.5
    assert (report.tokens_per_s_low, report.tokens_per_s, report.tokens_per_s_high) == (8.0, 16.0, 32.0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"token": "tokens"}, "no input 'tokens'"),
        ({"logits": "scores"}, "no output 'scores'"),
        ({"feed": {"past": "cache"}}, "no input 'past'"),
        ({"feed": {"cache": "logits"}}, "cannot be the inputs"),
        ({"feed": {"position": "cache"}}, "cannot be the inputs"),
        ({"token": "mask"}, "cannot be the inputs"),
    ],
)
def test_what_does_not_fit_is_said(change, words):
    fields = {name: getattr(CHOICE, name) for name in CHOICE.__struct_fields__}
    with pytest.raises(AceError) as caught:
        step(DecodeChoice(**{**fields, **change}))
    assert words in caught.value.problem.what


def test_cancelling_stops_before_the_next_token():
    calls = []

    def stop():
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        decode(Adds(), step(), tokens=9, check=stop)
