"""A line of a live model, and the functions and classes that a control can name there."""

import importlib.util
import math
import sys

import pytest

from ace_studio.engine.fixes.spots import Spot, reference_of

SOURCE = """
import math
import torch
from torch import nn

class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.item() * 2  # inside

def helper(x):
    return x.item()

class Part(nn.Module):
    def forward(self, x):
        return x

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()

    def forward(self, x):
        import operator
        y = helper(self.part(x))  # calls
        return operator.neg(math.sqrt(y))  # library

    def side(self, x):
        return helper(x)  # method

    def doubled(self, x):
        return Doubled.apply(x)  # applied
"""


@pytest.fixture
def spot(tmp_path, monkeypatch):
    """The spot of the line with a comment, in a live module."""
    path = tmp_path / "spotted.py"
    path.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("spotted", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "spotted", module)
    spec.loader.exec_module(module)

    def at(comment: str) -> Spot:
        line = next(number for number, text in enumerate(SOURCE.splitlines(), start=1) if f"# {comment}" in text)
        return Spot.of(str(path), line, module.Net())

    return at


def test_functions_and_classes_that_are_called_on_the_line_are_found(spot):
    assert [found.reference for found in spot("calls").functions()] == ["spotted:helper", "spotted:Part"]
    assert [found.name for found in spot("calls").classes()] == ["Part"]


def test_the_function_around_the_line_is_found_unless_it_is_forward(spot):
    first, second = spot("method").functions()
    assert first.reference == "spotted:Net.side"
    assert second.reference == "spotted:helper"


@pytest.mark.parametrize(
    ("line", "names"), [("inside", ["spotted:Doubled"]), ("applied", ["spotted:Net.doubled", "spotted:Doubled"])]
)
def test_an_autograd_function_is_found_by_its_own_line_and_where_it_is_applied(spot, line, names):
    assert [found.reference for found in spot(line).functions()] == names


def test_names_are_resolved_to_live_objects_also_if_imported_inside(spot):
    calls = spot("library").calls()
    assert {spot("library").resolve(call.func) for call in calls} == {math.sqrt, __import__("operator").neg}
    assert spot("library").resolve(calls[-1].args[0]) is None  # a local variable


def test_a_reference_leads_back_to_its_object_or_there_is_none(spot):
    assert reference_of(math.sqrt) == "math:sqrt"
    assert reference_of(lambda: None) == ""
    assert reference_of(3) == ""


def test_a_line_outside_of_its_file_has_no_source(tmp_path, spot):
    (tmp_path / "other.py").write_text("x = 1\n")
    nowhere = Spot.of(str(tmp_path / "other.py"), 9, spot("calls").root)
    assert (nowhere.source, nowhere.function, nowhere.calls()) == (None, None, [])
    assert list(nowhere.functions()) == []
