"""Importing OpenVINO and NNCF so that they neither send usage data nor draw on the terminal."""

from __future__ import annotations

import logging
import sys
from typing import Any

_SENDER = "openvino_telemetry"
"""The package that both report to. Both carry on without it; an environment variable of NNCF's that should silence it
still lets it write an id into the home folder."""


def import_openvino() -> Any:
    """The ``openvino`` package, without its sender of usage data."""
    _hide_sender()
    import openvino  # noqa: PLC0415 - optional package

    return openvino


def import_nncf() -> Any:
    """The ``nncf`` package, without its sender of usage data and with its logger at ERROR."""
    _hide_sender()
    import nncf  # noqa: PLC0415 - optional package

    logging.getLogger("nncf").setLevel(logging.ERROR)
    return nncf


def _hide_sender() -> None:
    """Make every later import of the sender fail; does nothing if somebody has imported it already."""
    modules: dict[str, Any] = sys.modules
    modules.setdefault(_SENDER, None)
