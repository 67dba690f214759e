"""ACE Studio: trace, compress, lower, measure and verify PyTorch models.

``ace_studio.compile`` and ``ace_studio.try_fixes`` are the Python door to the engine. It is imported on first use, so
that importing the package costs nothing and pulls in neither torch nor Qt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ace_studio.api import CompileResult, compile, try_fixes

__version__ = "0.2.0"
COMPLETE_VARIABLE = "_ACE_STUDIO_COMPLETE"
"""The variable with which a shell asks the command for completions (``ace-studio completion``)."""
__all__ = ["CompileResult", "__version__", "compile", "try_fixes"]


def __getattr__(name: str) -> Any:
    """Import the engine's door only when somebody opens it."""
    if name in {"compile", "CompileResult", "try_fixes"}:
        from ace_studio import api  # noqa: PLC0415 - deliberately late: api imports torch

        return getattr(api, name)
    raise AttributeError(f"module 'ace_studio' has no attribute {name!r}")
