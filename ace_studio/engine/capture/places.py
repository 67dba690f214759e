"""Places in the user's code: the line, its text, and the module whose forward holds it."""

from __future__ import annotations

import inspect
import linecache
import traceback
from collections.abc import Sequence
from dataclasses import dataclass

from torch import nn

from ace_studio.engine.user_files import is_user_file

_MODULE = ", module "


@dataclass(frozen=True)
class CodePlace:
    """A line of the user's code; `file` is empty if none is known."""

    file: str = ""
    line: int = 0
    module: str = ""
    """Dotted path of the module whose forward holds the line, or calls what holds it."""
    class_name: str = ""

    @property
    def source(self) -> str:
        """Text of the line."""
        return linecache.getline(self.file, self.line).strip() if self.file else ""

    @property
    def where(self) -> str:
        """``file:line, module path``, the text of `Problem.where`."""
        if not self.file:
            return ""
        return f"{self.file}:{self.line}" + (f"{_MODULE}{self.module}" if self.module else "")

    @classmethod
    def of(cls, where: str) -> CodePlace:
        """The place that `where` gave as text; an empty one if the text names no line."""
        place, _, module = where.partition(_MODULE)
        file, _, line = place.rpartition(":")
        return cls(file, int(line), module) if file and line.isdigit() else cls()


def find_place(frames: Sequence[traceback.FrameSummary], module: nn.Module) -> CodePlace:
    """The innermost user line among the frames (outermost first), with the module it belongs to."""
    forwards = _forward_lines(module)
    inner: traceback.FrameSummary | None = None
    for frame in reversed(frames):
        if not frame.lineno or not is_user_file(frame.filename):
            continue
        inner = inner or frame
        for path, class_name, file, first, last in forwards:
            if frame.filename == file and first <= frame.lineno <= last:
                return CodePlace(inner.filename, inner.lineno or 0, path, class_name)
    root = type(module).__name__
    return CodePlace("", 0, "", root) if inner is None else CodePlace(inner.filename, inner.lineno or 0, "", root)


def _no_forward() -> None:
    """Stands for a forward without Python code."""


def _forward_lines(module: nn.Module) -> list[tuple[str, str, str, int, int]]:
    """Path, class, file, first and last line of every forward in the user's own files, one per class."""
    found: dict[type, tuple[str, str, str, int, int]] = {}
    for path, child in module.named_modules():
        # A scripted module has no forward of its own to look at, and says so with an AttributeError.
        code = getattr(inspect.unwrap(getattr(type(child), "forward", _no_forward)), "__code__", None)
        if code is None or type(child) in found or not is_user_file(code.co_filename):
            continue
        lines = [line for _, _, line in code.co_lines() if line]
        first, last = code.co_firstlineno, max(lines, default=code.co_firstlineno)
        found[type(child)] = (path, type(child).__name__, code.co_filename, first, last)
    return list(found.values())
