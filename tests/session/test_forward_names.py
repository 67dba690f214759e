"""What a model takes is read from its code without running it."""

from __future__ import annotations

import pytest

from ace_studio.session.forward_names import forward_inputs

NET = """
class Net(nn.Module):
    def forward(self, image, mask, *rest, scale=1.0, sizes, **more):
        return image
"""
OTHER = """
class Head(nn.Module):
    def forward(self, features, flag=True):
        return features
"""


@pytest.mark.parametrize(
    ("text", "entry", "names"),
    [
        (NET, "Net", ("image", "mask", "sizes")),
        (NET + OTHER, "Head", ("features",)),
        (NET + OTHER + "def make():\n    return Head()\n", "make", ("features",)),
        (NET + OTHER + "def make():\n    return build(Net, Head)\n", "make", ()),
        (NET + "def make():\n    return load()\n", "make", ("image", "mask", "sizes")),
        (NET + "def make():\n    return load()\n", "", ("image", "mask", "sizes")),
        ("def broken(:", "Net", ()),
        ("x = 1", "Net", ()),
        ("class Net:\n    def forward(self, a, /, b, c=1): ...\n", "Net", ("a", "b")),
    ],
)
def test_arguments_without_a_default_are_what_it_takes(text, entry, names):
    assert forward_inputs(text, entry) == names
