"""The compiler's front end."""

import sys
from types import ModuleType

import pytest
import torch
from torch.func import jvp

from ace_studio.engine.torch_private import sizes
from ace_studio.engine.torch_private.dynamo import forget_traces, leave_transforms, readable_path


def test_a_module_that_is_loaded_anew_is_not_taken_for_the_one_before() -> None:
    """The compiler leaves ``__import_NAME`` behind in whatever globals it traced through."""
    old, new = ModuleType("reloaded_net"), ModuleType("reloaded_net")
    sys.modules["reloaded_net"] = new
    try:
        vars(sizes)["__import_reloaded_net"] = old
        forget_traces()
        assert "__import_reloaded_net" not in vars(sizes)
        vars(sizes)["__import_reloaded_net"] = new
        forget_traces()
        assert vars(sizes).pop("__import_reloaded_net") is new
    finally:
        del sys.modules["reloaded_net"]


@pytest.mark.parametrize(
    ("source", "path"),
    [
        ("L['self']._modules['blocks']._modules['1'].conv", "blocks.1.conv"),
        ("L['self'].blocks[0]", "blocks.0"),
        ("L__self___blocks", "_blocks"),
        ("L['self']", ""),
    ],
)
def test_the_compilers_name_of_a_module_becomes_its_dotted_path(source: str, path: str) -> None:
    assert readable_path(source) == path


def test_after_a_trace_that_left_jvp_open_jvp_works_again() -> None:
    x = torch.ones(2)
    torch._C._enter_dual_level()  # as the compiler does where it stops inside jvp
    with pytest.raises(RuntimeError, match="Nested forward mode AD"):
        jvp(torch.sin, (x,), (x,))
    for _ in range(2):
        leave_transforms()
        assert torch.equal(jvp(torch.sin, (x,), (x,))[1], x.cos())
