"""OpenVINO and NNCF are imported without the package that sends usage data."""

import subprocess
import sys

import pytest

pytest.importorskip("openvino")
CODE = """
from ace_studio.engine.targets.openvino.library import import_openvino
import_openvino()
try:
    import openvino_telemetry
except ImportError:
    print("no sender")
"""


def test_the_sender_of_usage_data_cannot_be_imported_afterwards():
    assert subprocess.check_output([sys.executable, "-c", CODE], text=True) == "no sender\n"
