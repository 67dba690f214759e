"""Imports transformers late, without its messages and without network access."""

import contextlib
import importlib
import logging
import os
import sys
import warnings
from collections.abc import Iterator
from types import ModuleType

from ace_studio.engine.load.torchvision.ops import make_importable
from ace_studio.records.errors import AceError, ErrorCode


def import_transformers() -> ModuleType:
    """Import the package. Raises: AceError(NOT_INSTALLED)."""
    why = "a Hugging Face folder holds configuration and weights; the classes are in transformers"
    return import_package("transformers", why=why)


def import_package(name: str, *, why: str) -> ModuleType:
    """Import an optional package. ``why`` says what it is needed for. Raises: AceError(NOT_INSTALLED)."""
    make_importable()
    try:
        with silence():
            return importlib.import_module(name)
    except (ImportError, RuntimeError, OSError) as error:
        package = name.partition(".")[0]
        is_missing = isinstance(error, ModuleNotFoundError) and error.name == package
        raise AceError.of(
            ErrorCode.NOT_INSTALLED,
            f"{package} is {'not installed' if is_missing else 'installed, but cannot be imported'}",
            why=why if is_missing else str(error)[:300],
            remedy=install_line(package),
        ) from error


def install_line(package: str) -> str:
    """The command that installs a package."""
    return f"{sys.executable} -m pip install {package}"


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Suppress warnings of packages that transformers imports, about optional libraries of theirs."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


@contextlib.contextmanager
def offline_and_quiet(transformers: ModuleType, *, runs_code: bool) -> Iterator[None]:
    """Suppress downloads, progress bars and log messages; ACE Studio reports what matters.

    Unless the folder ``runs_code`` that is trusted, torch unpickles nothing for any library: a configuration may name
    files of any kind, such as a checkpoint for timm.
    """
    chatter = transformers.utils.logging
    level, had_bars = chatter.get_verbosity(), chatter.is_progress_bar_enabled()
    names = ("HF_HUB_OFFLINE", *(() if runs_code else ("TORCH_FORCE_WEIGHTS_ONLY_LOAD",)))
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    chatter.set_verbosity_error()
    chatter.disable_progress_bar()
    try:
        with silence():
            yield
    finally:
        chatter.set_verbosity(level)
        if had_bars:
            chatter.enable_progress_bar()
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
