"""Collects what torch prints, logs and warns while it traces; when it fails it prints whole graphs."""

import io
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import TextIO


@contextmanager
def captured_output() -> Iterator[io.StringIO]:
    """Everything printed inside the block, by print, by torch's loggers and by warnings, goes into the text."""
    text = io.StringIO()
    names = ["torch", *(name for name in logging.root.manager.loggerDict if name.startswith("torch."))]
    handlers = {handler for name in names for handler in logging.getLogger(name).handlers}
    # Handlers of torch's own kinds write elsewhere (its trace files) and close what they write to: not those.
    streams = {
        handler: _write_to(handler, text)
        for handler in handlers
        if isinstance(handler, logging.StreamHandler) and type(handler) is logging.StreamHandler
    }
    caught: list[warnings.WarningMessage] = []
    try:
        with redirect_stdout(text), redirect_stderr(text), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield text
    finally:
        for handler, stream in streams.items():
            handler.setStream(stream)
        for warning in caught:
            text.write(f"{warning.category.__name__}: {warning.message}\n")


def _write_to(handler: logging.StreamHandler[TextIO], text: TextIO) -> TextIO:
    """Let the handler write to ``text``. Returns its stream until now, which its owner may have closed."""
    before = handler.stream
    if getattr(before, "closed", False):
        handler.stream = text  # setStream would flush the closed stream
    else:
        handler.setStream(text)
    return before
