"""Importing the engine keeps the libraries that it uses from sending usage data."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SESSION = """
import onnxruntime
from onnx import TensorProto, helper
inputs, outputs = ([helper.make_tensor_value_info(name, TensorProto.FLOAT, [1])] for name in "xy")
graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "graph", inputs, outputs)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
onnxruntime.InferenceSession(model.SerializeToString())
"""


def files_left_by(code: str, home: Path) -> list[str]:
    """The files that a fresh process leaves in its home folder."""
    home.mkdir()
    variables = {"HOME": str(home), "PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    subprocess.run([sys.executable, "-B", "-c", code], env=variables, check=True, timeout=120)
    return [path.name for path in home.rglob("*") if path.is_file()]


@pytest.mark.skipif(sys.platform != "linux", reason="the folder for the device id is that of Linux")
def test_no_library_stores_a_device_id_in_the_home_folder(tmp_path):
    pytest.importorskip("onnxruntime")
    if "deviceid" not in files_left_by(SESSION, tmp_path / "alone"):
        pytest.skip("this build of onnxruntime sends no usage data")
    assert files_left_by("import ace_studio.engine\n" + SESSION, tmp_path / "ours") == []
