"""Which source files are the user's."""

import functools
import re
import sysconfig
from pathlib import Path

import torch

_ENGINE_FOLDER = f"{Path(__file__).resolve().parent}/"
_TORCH_FOLDER = f"{Path(torch.__file__).resolve().parent}/"
_LIBRARY_FOLDER = f"{Path(sysconfig.get_path('stdlib')).resolve()}/"
_FRAME = re.compile(r'File "([^"]+)", line (\d+)')


@functools.cache
def is_user_file(file: str) -> bool:
    """Whether a source file is neither torch's, nor Python's, nor ours; a library such as torchvision is the user's.

    Paths are compared without symbolic links: a ``.venv`` may be one.
    """
    if not file or file.startswith(("<", "torch/")):
        return False
    path = str(Path(file).resolve())
    if path.startswith((_TORCH_FOLDER, _ENGINE_FOLDER)):
        return False
    return not path.startswith(_LIBRARY_FOLDER) or "site-packages" in path or "dist-packages" in path


def user_place(stack_trace: str) -> tuple[str, int]:
    """File and line of the innermost frame in the user's files; empty and 0 if there is none."""
    frames = reversed(_FRAME.findall(stack_trace or ""))
    return next(((file, int(line)) for file, line in frames if is_user_file(file)), ("", 0))
