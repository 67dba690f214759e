"""Says on stderr which line ends the process, where Python itself would say nothing: os._exit and os.kill."""

import faulthandler
import os
from collections.abc import Callable
from typing import Any

HEADLINE = "Fatal Python error: "
"""What an interpreter that dies prints before the stack; the parent looks for it."""


def tell_last_words() -> None:
    """Print the stack before code of this process ends it. Processes that it forks end as before."""
    own = os.getpid()
    os._exit = _telling(os._exit, lambda *_: os.getpid() == own)
    os.kill = _telling(os.kill, lambda pid, number: pid == own == os.getpid() and number != 0)


def _telling(function: Callable[..., Any], is_told: Callable[..., bool]) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        if is_told(*arguments):
            words = f"os.{function.__name__}({', '.join(map(str, arguments))})"
            os.write(2, f"\n{HEADLINE}{words}\n\n".encode())
            faulthandler.dump_traceback(2, all_threads=False)  # sys.stderr may be a buffer now
        return function(*arguments)

    return call
