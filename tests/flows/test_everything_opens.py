"""Every kind that needs no factory, from the command line to the captured graph, in a real engine process."""

from __future__ import annotations

import importlib.util
import json

import pytest
import torch

from ace_studio.cli import run_command
from tests.flows.tiny_vit import write_vit
from tests.tiny_models import conv_net

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.usefixtures("one_engine"),
]


def needs(*packages: str) -> None:
    if missing := [name for name in packages if importlib.util.find_spec(name) is None]:
        pytest.skip(f"not installed: {', '.join(missing)}")


def trace(capsys, *words: str) -> dict:
    assert run_command(["trace", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)["capture"]


def test_a_model_of_a_package_by_its_name(tmp_path, monkeypatch, capsys):
    needs("timm", "torchvision")
    monkeypatch.chdir(tmp_path)
    capture = trace(capsys, "timm:test_resnet")
    assert capture["inputs"][0]["dims"][0]["verdict"] == "dynamic"


def test_a_torchscript_program(tmp_path, capsys):
    torch.jit.save(torch.jit.script(conv_net().module), tmp_path / "m.pt")
    inputs = ("--input", "x=2x3x16x16", "--input", "x=3x3x16x16")
    capture = trace(capsys, str(tmp_path / "m.pt"), *inputs, "--trust")
    assert capture["rung"] == "export"
    assert capture["inputs"][0]["dims"][0]["verdict"] == "dynamic"


def test_a_folder_of_hugging_face(tmp_path, capsys):
    needs("transformers")
    capture = trace(capsys, str(write_vit(tmp_path / "vit", width=8, pixels=16)))
    assert capture["inputs"][0]["name"] == "pixel_values"
    assert capture["inputs"][0]["dims"][0]["verdict"] == "dynamic"


def test_an_onnx_file(tmp_path, capsys):
    needs("onnx", "onnxruntime", "onnxscript")
    from tests.engine.load.onnx_samples import write_classifier

    capture = trace(capsys, str(write_classifier(tmp_path / "m.onnx")))
    assert (capture["rung"], capture["ops"]) == ("onnx", 6)
