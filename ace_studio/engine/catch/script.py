"""Runs a script inside this process as ``python script.py`` would."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from ace_studio.engine.replaced import replaced_attribute


def run_script(path: Path, content: bytes, arguments: Sequence[str]) -> None:
    """Run the script's bytes as ``__main__``; ``sys.exit()`` without an error ends it normally.

    Raises: whatever the script raises; SystemExit if it ends with an error.
    """
    main = ModuleType("__main__")
    main.__dict__.update(__file__=str(path), __cached__=None, __spec__=None, __builtins__=__builtins__)
    code = compile(content, str(path), "exec", dont_inherit=True)
    with _in_place_of_main(main), replaced_attribute(sys, "argv", [str(path), *arguments]), settings_kept():
        try:
            exec(code, main.__dict__)  # trusted: the user confirmed the hash of these bytes
        except SystemExit as end:
            if end.code not in (None, 0):
                raise


@contextmanager
def _in_place_of_main(main: ModuleType) -> Iterator[None]:
    """Let the script be ``__main__``, where pickles and its own code look up functions and classes."""
    before = sys.modules["__main__"]
    sys.modules["__main__"] = main
    try:
        yield
    finally:
        sys.modules["__main__"] = before


@contextmanager
def settings_kept() -> Iterator[None]:
    """Restore torch's global settings after the block, so that the next job does not inherit a script's changes."""
    dtype, threads, grad = torch.get_default_dtype(), torch.get_num_threads(), torch.is_grad_enabled()
    seed = torch.get_rng_state()
    is_strict: Any = torch.are_deterministic_algorithms_enabled()
    try:
        with torch.enable_grad():  # as it is when Python starts
            yield
    finally:
        torch.set_default_dtype(dtype)
        torch.set_num_threads(threads)
        torch.set_grad_enabled(grad)
        torch.set_rng_state(seed)
        with contextlib.suppress(RuntimeError):
            torch.use_deterministic_algorithms(is_strict)
        torch.set_default_device(None)
