"""Imports OpenVINO and NNCF so that they neither send usage data nor write to the terminal."""

import logging
import sys
from typing import Any

_SENDER = "openvino_telemetry"
"""The package through which both send usage data. Both work without it. NNCF's environment variable against it does
not keep it from writing an id into the home folder."""


def import_openvino() -> Any:
    """The ``openvino`` package, without its sender of usage data."""
    _hide_sender()
    import openvino

    return openvino


def import_nncf() -> Any:
    """The ``nncf`` package, without its sender of usage data and with its logger at ERROR."""
    _hide_sender()
    import nncf

    logging.getLogger("nncf").setLevel(logging.ERROR)
    return nncf


def _hide_sender() -> None:
    """Make every later import of the sender fail; does nothing if it was imported already."""
    modules: dict[str, Any] = sys.modules
    modules.setdefault(_SENDER, None)
