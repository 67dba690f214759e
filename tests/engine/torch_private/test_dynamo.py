"""The compiler's front end."""

from __future__ import annotations

import sys
from types import ModuleType

from ace_studio.engine.torch_private import sizes
from ace_studio.engine.torch_private.dynamo import forget_traces


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
