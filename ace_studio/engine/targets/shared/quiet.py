"""Keeping talkative libraries quiet without losing what they said."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator


@contextlib.contextmanager
def hushed() -> Iterator[io.StringIO]:
    """Run a block whose prints, warnings and log lines below ERROR should not reach the user; gives what was printed.

    Exporters print graphs when they fail, quantizers draw progress bars: a log of ours must not be full of them.
    """
    said = io.StringIO()
    disabled_before = logging.root.manager.disable
    with warnings.catch_warnings(), contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        warnings.simplefilter("ignore")
        logging.disable(max(disabled_before, logging.WARNING))
        try:
            yield said
        finally:
            logging.disable(disabled_before)
