"""ACE Studio: trace, compress, lower, measure and verify PyTorch models.

``ace_studio.compile``, ``ace_studio.try_fixes`` and ``ace_studio.sweep`` are the Python door to the engine. It is
imported on first use, so that importing the package costs nothing and pulls in neither torch nor Qt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ace_studio.api import CompileResult, compile, try_fixes
    from ace_studio.sweeps.entry import sweep

__version__ = "0.3.0"
COMPLETE_VARIABLE = "_ACE_STUDIO_COMPLETE"
"""The variable with which a shell asks the command for completions (``ace-studio completion``)."""
__all__ = ["CompileResult", "__version__", "compile", "sweep", "try_fixes"]


def __getattr__(name: str) -> Any:
    """Import the engine's door only when somebody opens it."""
    if name in {"compile", "CompileResult", "try_fixes"}:
        from ace_studio import api  # noqa: PLC0415 - deliberately late: api imports torch

        return getattr(api, name)
    if name == "sweep":
        from ace_studio.sweeps import entry  # noqa: PLC0415 - dask takes a second, and is an extra

        return entry.sweep
    raise AttributeError(f"module 'ace_studio' has no attribute {name!r}")
