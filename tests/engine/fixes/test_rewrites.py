"""Rewriting branches and values: the text that comes out, and what it computes."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ace_studio.engine.fixes import CannotRewriteError, ProposedFix, Spot, noting, proposed_fixes, unified_diff
from ace_studio.records.fixes import FixKind
from ace_studio.records.patches import apply_patch

HEAD = "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n"


def source_of(body: str, head: str = HEAD) -> str:
    return head + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + "\n"


def found(tmp_path: Path, body: str, kind: FixKind, *, head: str = HEAD) -> ProposedFix:
    """The one candidate of a kind for the line that is marked with ``# here``."""
    text = source_of(body, head)
    path = tmp_path / "net.py"
    path.write_text(text)
    line = next(number for number, one in enumerate(text.splitlines(), start=1) if "# here" in one)
    (one,) = [one for one in proposed_fixes(Spot.of(str(path), line, nn.Identity())) if one.kind is kind]
    return one


def module_of(text: str) -> Any:
    space = ModuleType(f"net_{abs(hash(text))}")
    sys.modules[space.__name__] = space  # where the compiler looks for it
    exec(compile(text, "net.py", "exec"), vars(space))
    return space.Net().eval()


@pytest.fixture(autouse=True)
def _modules_forgotten():
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith("net_"):
            del sys.modules[name]


def assert_same(before: str, after: str, *inputs: Tensor) -> None:
    """Both texts compute the same for every input."""
    torch.manual_seed(0)
    one, other = module_of(before), module_of(after)
    other.load_state_dict(one.state_dict())
    assert inputs
    for given in inputs:
        first, second = one(given.clone()), other(given.clone())
        torch.testing.assert_close(second, first, equal_nan=True)


X = torch.arange(8.0).reshape(2, 4)
EVERY = (X, -X, X * 0, X - 3.5)

EARLY = """
def forward(self, x):
    # decide
    if x.mean() > 0:  # here
        return torch.relu(x) + 1
    # else keep
    y = x * 2
    return y
"""
ELSE = """
def forward(self, x):
    scale = torch.ones(())
    if x.mean() > 0 and not x.isnan().any():  # here
        x = x + 1
        x *= x.sum() + 2
    elif x.sum().item() < -3:
        y = x.abs()
        x = y - 1
    else:
        scale = scale * 3
    return x * scale
"""
CHAIN = """
def forward(self, x):
    a = x + 1
    if a.sum() > 0: return a, {"x": x}  # here
    b = a * 2
    if b.sum() > -5:
        return b, {"x": a}
    return a, {"x": b}
"""
EXPRESSION = """
def forward(self, x):
    y = torch.relu(x) if 0 < x.sum() < 20 else x  # here
    return y
"""
SIDES = """
def forward(self, x):
    if bool(x.min() < 0) or torch.equal(x, x.abs()):  # here
        return [x + 1, x.sum()]
    else:
        z = x - 1
        return [z, z.mean()]
"""
NESTED = """
def forward(self, x):
    if x.sum() > 0:  # here
        if x.max() > 3:
            x = x - 1
        x = x * 2
    return x
"""
FORMS = {"early": EARLY, "else": ELSE, "expression": EXPRESSION, "sides": SIDES, "nested": NESTED}


@pytest.mark.parametrize("form", [*FORMS, "chain"])
def test_torch_where_computes_what_the_branch_computed(tmp_path, form):
    body = {**FORMS, "chain": CHAIN.replace('{"x": x}', "x").replace('{"x": a}', "a").replace('{"x": b}', "b")}[form]
    one = found(tmp_path, body, FixKind.WHERE)
    assert not one.refusal and " if " not in one.text.replace("# else", "")
    assert_same(source_of(body), one.text, *EVERY)


def test_results_in_a_dictionary_are_chosen_item_by_item(tmp_path):
    body = 'def forward(self, x):\n    if x.sum() > 0:  # here\n        return {"a": x}\n    return {"a": x + 1}'
    one = found(tmp_path, body, FixKind.WHERE)
    assert 'return {"a": torch.where(is_taken, x, x + 1)}' in one.text
    assert_same(source_of(body), one.text, *EVERY)


def test_results_nested_twice_are_left_to_torch_cond(tmp_path):
    assert "nested more than once" in found(tmp_path, CHAIN, FixKind.WHERE).refusal
    one = found(tmp_path, CHAIN, FixKind.COND)
    assert one.text.count("torch.cond(") == 2 and " if " not in one.text


# torch.cond compiles itself when it is called; one form of each is run, the rest is run by the tests of the trying
@pytest.mark.parametrize("form", ["early", "else", "expression"])
def test_torch_cond_computes_what_the_branch_computed(tmp_path, form):
    one = found(tmp_path, FORMS[form], FixKind.COND)
    assert not one.refusal
    assert_same(source_of(FORMS[form]), one.text, X, -X)


def test_only_the_lines_of_the_branch_change(tmp_path):
    one = found(tmp_path, EARLY, FixKind.WHERE)
    path = tmp_path / "net.py"
    spot = Spot.of(str(path), 9, nn.Identity())
    patch = unified_diff(spot.source, one.text, folder=tmp_path)
    assert patch.splitlines()[:2] == ["--- net.py", "+++ net.py"]
    removed = [line[1:].strip() for line in patch.splitlines()[2:] if line.startswith("-")]
    assert removed == ["if x.mean() > 0:  # here", "return torch.relu(x) + 1", "return y"]
    assert "# else keep" in one.text and "# decide" in one.text
    assert apply_patch(path.read_text(), patch) == one.text


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


@pytest.mark.parametrize("ending", ["\r\n", "\n"])
def test_line_ends_and_a_missing_last_one_survive(tmp_path, ending):
    path = tmp_path / "net.py"
    text = source_of(EXPRESSION).rstrip("\n").replace("\n", ending)
    path.write_bytes(text.encode())
    line = next(number for number, one in enumerate(text.split(ending), start=1) if "# here" in one)
    spot = Spot.of(str(path), line, nn.Identity())
    one = next(one for one in proposed_fixes(spot) if one.kind is FixKind.WHERE)
    assert one.text.count(ending) == text.count(ending) and not one.text.endswith("\n")
    assert apply_patch(text, unified_diff(spot.source, one.text, folder=tmp_path)) == one.text


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


@pytest.mark.parametrize(
    ("side", "why"),
    [
        ("for _ in range(3):\n            x = x + 1", "no plain assignment (for)"),
        ("y = x + 1\n    x = y", "'y' gets a value on one side only"),
        ("return None", "one side returns None"),
        ("x = f'{x}'", "f-string"),
    ],
)
def test_torch_where_is_refused_where_it_cannot_be_written(tmp_path, side, why):
    body = f"def forward(self, x):\n    if x.sum() > 0:  # here\n        {side}\n    return x"
    assert why in found(tmp_path, body, FixKind.WHERE).refusal


@pytest.mark.parametrize("kind", [FixKind.WHERE, FixKind.COND])
def test_a_test_that_assigns_is_refused(tmp_path, kind):
    body = "def forward(self, x):\n    if (m := x.mean()) > 0:  # here\n        x = x - m\n    return x"
    one = found(tmp_path, body, kind)
    assert "assign" in one.refusal and not one.text


def test_torch_cond_takes_a_loop_inside_of_a_side(tmp_path):
    side = "for _ in range(3):\n            x = x + 1"
    body = f"def forward(self, x):\n    if x.sum() > 0:  # here\n        {side}\n    return x"
    one = found(tmp_path, body, FixKind.COND)
    assert "def taken_side(x):" in one.text and "torch.cond(x.sum() > 0, taken_side, other_side, (x,))" in one.text


@pytest.mark.parametrize(("side", "is_told"), [("x / x.sum()", True), ("x.log()", True), ("x + 1", False)])
def test_an_operation_that_the_branch_may_have_guarded_is_told(tmp_path, side, is_told):
    body = f"def forward(self, x):\n    if x.sum() > 0:  # here\n        return {side}\n    return x"
    assert ("NaN" in found(tmp_path, body, FixKind.WHERE).note) is is_told


VALUES = """
def forward(self, x):
    n, m = int(x.max().item()), len(x)  # here
    return x[:, : n] * m
"""


def test_values_are_noted_and_written_as_constants(tmp_path):
    calls = found(tmp_path, VALUES, FixKind.CONSTANT).values
    assert calls is not None and calls.words == "`int(x.max().item())`, `len(x)`"
    assert "__ace_studio_note__(0, int(x.max().item())), __ace_studio_note__(1, len(x))" in calls.instrumented()
    assert "n, m = 3, 2  # here" in calls.with_constants([[3, 3], [2]])


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        ([[3, 4], [2]], "not the same on all examples: 3, 4"),
        ([[3], []], "`len(x)` was not reached"),
        ([[torch.ones(2)], [2]], "no plain number, but Tensor"),
        ([[float("nan")], [2]], "no way to be written"),
    ],
)
def test_a_value_that_is_no_constant_is_refused(tmp_path, seen, why):
    calls = found(tmp_path, VALUES, FixKind.CONSTANT).values
    assert calls is not None
    with pytest.raises(CannotRewriteError) as caught:
        calls.with_constants(seen)
    assert why in str(caught.value)


def test_the_hook_gives_back_what_it_notes():
    seen: list[list[Any]] = [[], []]
    note = noting(seen)
    assert (note(1, 5), note(0, 2.5), seen) == (5, 2.5, [[2.5], [5]])


def test_a_file_of_an_installed_package_is_not_patched(tmp_path):
    folder = tmp_path / "site-packages"
    folder.mkdir()
    path = folder / "net.py"
    path.write_text(source_of(EARLY))
    assert list(proposed_fixes(Spot.of(str(path), 8, nn.Identity()))) == []


def test_a_place_that_does_not_exist_has_no_fixes(tmp_path):
    path = tmp_path / "net.py"
    path.write_text(source_of(EARLY))
    for file, line in ((path, 99), (path, 0), (tmp_path / "no.py", 1)):
        assert list(proposed_fixes(Spot.of(str(file), line, nn.Identity()))) == []
