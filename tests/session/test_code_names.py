"""Names of the user's code, read from the syntax tree."""

import pytest

from ace_studio.session.code_names import forward_inputs, name_at, names_in

TEXT = """import torch

@torch.no_grad()
def pick(x):
    def inner():
        return 1
    return inner()

class Net(torch.nn.Module):
    def forward(self, x):
        return pick(x)

if True:
    def late(): ...
"""


def test_functions_methods_and_classes_are_named_as_controls_want_them():
    assert [name.qualified for name in names_in(TEXT)] == ["pick", "Net", "Net.forward", "late"]
    assert [name.is_class for name in names_in(TEXT)] == [False, True, False, False]
    assert names_in(TEXT)[2].control_name("/models/my_net.py") == "my_net:Net.forward"
    assert names_in(TEXT)[2].control_name("C:\\models\\my_net.py") == "my_net:Net.forward"


@pytest.mark.parametrize(
    ("line", "expected"), [(1, None), (3, "pick"), (6, "pick"), (9, "Net"), (11, "Net.forward"), (12, None)]
)
def test_a_line_belongs_to_the_innermost_name_around_it(line, expected):
    found = name_at(TEXT, line)
    assert (found.qualified if found else None) == expected


@pytest.mark.parametrize("text", ["def broken(", "\0", "", "(" * 5000])
def test_a_text_that_is_no_python_has_no_names(text):
    assert names_in(text) == ()


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
