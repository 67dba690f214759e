"""Runs a script inside this process as ``python script.py`` would."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import torch

from ace_studio.engine.replaced import replaced_attribute


def run_script(path: Path, content: bytes, arguments: Sequence[str]) -> None:
    """Run the script's bytes as ``__main__``; ``sys.exit()`` without an error ends it normally.

    Raises: whatever the script raises; SystemExit if it ends with an error.
    """
    main = ModuleType("__main__")
    main.__dict__.update(__file__=str(path), __cached__=None, __spec__=None, __builtins__=__builtins__)
    code = compile(content, str(path), "exec", dont_inherit=True)
    with _in_place_of_main(main), replaced_attribute(sys, "argv", [str(path), *arguments]), torch.enable_grad():
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
