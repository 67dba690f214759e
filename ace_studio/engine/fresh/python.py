"""The command line of a new process that runs a module of this package."""

import sys
from pathlib import Path

_PACKAGE_PARENT = Path(__file__).resolve().parents[3]


def fresh_python(module: str, function: str, *arguments: str) -> list[str]:
    """The command line that calls ``function(*arguments)`` of a module of this package and exits with its result.

    The folder that it is started in is not searched for modules (``-P``): a ``random.py`` or ``profile.py`` beside a
    user's model would else be taken for Python's own. Garbage collection leaves out what is imported, which stays for
    good: to look through torch at every collection, and twice at the end, took two of five seconds.
    """
    code = (
        f"import gc, sys; gc.disable(); sys.path.insert(0, {str(_PACKAGE_PARENT)!r}); "
        f"from {module} import {function}; gc.freeze(); gc.enable(); sys.exit({function}(*sys.argv[1:]))"
    )
    return [sys.executable, "-P", "-c", code, *arguments]
