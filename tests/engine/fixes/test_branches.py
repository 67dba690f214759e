"""A branch is found and analysed before it is rewritten."""

import ast

import pytest
from torch import nn

from ace_studio.engine.fixes import Spot
from ace_studio.engine.fixes.branches import branch_at, has_return
from ace_studio.records.fixes import FixKind
from tests.engine.fixes.branches import ELSE, EVERY, assert_same, found, source_of


def test_a_file_that_does_not_import_torch_gets_the_import(tmp_path):
    head = '"""Net."""\nfrom torch import nn, relu\n\n\nclass Net(nn.Module):\n'
    body = "def forward(self, x):\n    return relu(x) if x.sum() > 0 else x  # here"
    one = found(tmp_path, body, FixKind.WHERE, head=head)
    assert one.text.startswith('"""Net."""\nfrom torch import nn, relu\nimport torch\n')
    assert_same(source_of(body, head), one.text, *EVERY)


def test_another_name_of_torch_is_used_as_the_file_uses_it(tmp_path):
    head = "import torch as t\nfrom torch import nn\n\n\nclass Net(nn.Module):\n"
    body = "def forward(self, x):\n    return t.relu(x) if x.sum() > 0 else x  # here"
    assert "t.where(x.sum() > 0, t.relu(x), x)" in found(tmp_path, body, FixKind.WHERE, head=head).text


REFUSED = {
    "attribute": ("self.seen = x\n        x = x + 1", "assigns to an attribute"),
    "in place": ("x.mul_(2)", "mul_(), which changes its object in place"),
    "raise": ("raise ValueError", "it raises"),
    "list": ("found.append(x)", "append(), which changes"),
}


@pytest.mark.parametrize("kind", [FixKind.WHERE, FixKind.COND])
@pytest.mark.parametrize("name", REFUSED)
def test_a_side_that_does_more_than_compute_is_refused_with_what_it_does(tmp_path, kind, name):
    side, why = REFUSED[name]
    body = f"def forward(self, x):\n    found = []\n    if x.sum() > 0:  # here\n        {side}\n    return x"
    one = found(tmp_path, body, kind)
    assert why in one.refusal and not one.text


@pytest.mark.parametrize("kind", [FixKind.WHERE, FixKind.COND])
def test_a_test_that_assigns_is_refused(tmp_path, kind):
    body = "def forward(self, x):\n    if (m := x.mean()) > 0:  # here\n        x = x - m\n    return x"
    one = found(tmp_path, body, kind)
    assert "assign" in one.refusal and not one.text


@pytest.mark.parametrize(("side", "is_told"), [("x / x.sum()", True), ("x.log()", True), ("x + 1", False)])
def test_an_operation_that_the_branch_may_have_guarded_is_told(tmp_path, side, is_told):
    body = f"def forward(self, x):\n    if x.sum() > 0:  # here\n        return {side}\n    return x"
    assert ("NaN" in found(tmp_path, body, FixKind.WHERE).note) is is_told


@pytest.mark.parametrize(
    ("text", "returns"),
    [
        ("return 1", True),
        ("for _ in x:\n    return 1", True),
        ("try:\n    pass\nexcept ValueError:\n    return 1", True),
        ("def inner():\n    return 1", False),
        ("y = 1", False),
    ],
)
def test_a_return_counts_unless_it_is_that_of_an_inner_function(text, returns):
    assert has_return(ast.parse(text).body[0]) is returns


def test_the_branch_is_the_one_whose_test_is_on_the_line(tmp_path):
    path = tmp_path / "net.py"
    path.write_text(source_of(ELSE))
    lines = path.read_text().splitlines()
    at = {text.strip().split()[0]: number for number, text in enumerate(lines, start=1) if text}
    branch = branch_at(Spot.of(str(path), at["elif"], nn.Identity()))
    assert branch is not None and branch.is_elif
    assert branch_at(Spot.of(str(path), at["scale"], nn.Identity())) is None
