"""Importing OpenVINO and NNCF so that they neither send usage data nor draw on the terminal."""

from __future__ import annotations

import logging
import os
from typing import Any

_NO_TELEMETRY = "NNCF_CI"
"""Any value makes NNCF replace its sender by an object that does nothing; read when NNCF is imported."""


def import_openvino() -> Any:
    """The ``openvino`` package. Its converter would send usage data and is not used; the rest sends nothing."""
    import openvino  # noqa: PLC0415 - optional package

    return openvino


def import_nncf() -> Any:
    """The ``nncf`` package with its telemetry replaced by nothing and its logger at ERROR."""
    before = os.environ.get(_NO_TELEMETRY)
    os.environ[_NO_TELEMETRY] = "1"
    try:
        import nncf  # noqa: PLC0415 - optional package
    finally:
        if before is None:
            del os.environ[_NO_TELEMETRY]
    logging.getLogger("nncf").setLevel(logging.ERROR)
    return nncf
