"""Keeps the output of libraries from the user without losing it."""

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator


@contextlib.contextmanager
def hushed() -> Iterator[io.StringIO]:
    """Collect what a block prints, and drop its warnings and log lines below ERROR.

    Exporters print whole graphs when they fail, and quantizers draw progress bars.
    """
    said = io.StringIO()
    disabled_before = logging.root.manager.disable
    silent = warnings.catch_warnings(action="ignore")
    with silent, contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        logging.disable(max(disabled_before, logging.WARNING))
        try:
            yield said
        finally:
            logging.disable(disabled_before)
