"""The programs of the pages on running artifacts elsewhere: what the window copies, and C++ that computes the same."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from ace_studio.engine.targets import TARGETS
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.results import RunStatus, TargetRun, Warning
from ace_studio.session.generated_code.opening import opening_code
from tests.engine.captured import captured_of
from tests.engine.targets.conftest import bound, make_job
from tests.help_blocks import Block, blocks_of
from tests.test_example import load_file

PAGE = "resources/help/deploy.md"
CPP_PAGE = "resources/help/deploy-cpp.md"
FOLDERS = {"onnxruntime": "00", "openvino": "01", "eager": "02", "aoti": "03", "litert": "04"}
FILES = {
    "onnxruntime": "model.onnx", "openvino": "model.xml", "eager": "model.pt2", "aoti": "model.pt2",
    "litert": "model.tflite",
}  # fmt: skip
PROGRAMS = {"onnxruntime": "run_onnx", "openvino": "run_openvino", "aoti": "run_package"}
BFLOAT16 = Warning(
    code="artifact-options",
    what="artifacts/01-openvino-fp32/model.xml computes as measured only if it is opened with "
    '{"INFERENCE_PRECISION_HINT": "f32"}',
    where="artifacts/01-openvino-fp32/model.xml",
    options={"INFERENCE_PRECISION_HINT": "f32"},
)


def artifact_of(target: str) -> str:
    return f"artifacts/{FOLDERS[target]}-{target}-fp32/{FILES[target]}"


def python_of(target: str) -> Block:
    (block,) = [one for one in blocks_of(PAGE) if one.language == "python" and artifact_of(target) in one.text]
    return block


def cpp_of(target: str) -> tuple[Block, Block]:
    """The program, and the lines that compile and start it."""
    blocks = blocks_of(CPP_PAGE)
    at = next(at for at, one in enumerate(blocks) if one.said("file") == f"{PROGRAMS[target]}.cpp")
    return blocks[at], blocks[at + 1]


@pytest.mark.parametrize("target", FOLDERS)
def test_the_python_of_the_page_is_what_the_window_copies(target):
    run = TargetRun(target=target, status=RunStatus.OK, artifact=artifact_of(target))
    warnings = [BFLOAT16] if target == "openvino" else []
    assert python_of(target).text == opening_code(run, artifact_of(target), warnings=warnings, threads=1)


@pytest.fixture(scope="module")
def captured(digits_folder):
    """The shipped example, traced."""
    example = load_file(digits_folder / "model.py")
    sys.modules.pop("model")
    return captured_of(example.make_model(), *example.tracing_inputs())


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("deploy")


def build(target: str, captured, place: Path) -> None:
    """Save the artifact of a target where the page has it, once."""
    folder = (place / artifact_of(target)).parent
    if not folder.exists():
        folder.mkdir(parents=True)
        TARGETS[target].lower(make_job(captured, bound(target, captured, Precision.FP32), folder)).save(folder)


def python_scores(target: str) -> np.ndarray:
    """What the Python of the page gives in the current folder for the input of the C++ programs."""
    names: dict[str, object] = {"inputs": [np.full((1, 1, 8, 8), 0.5, np.float32)]}
    exec(compile(python_of(target).text, PAGE, "exec"), names)
    return np.asarray(torch.as_tensor(names["outputs"][0]).detach()).ravel()


@pytest.fixture
def in_place(place, monkeypatch):
    monkeypatch.chdir(place)
    monkeypatch.setenv("AOTI_RUNTIME_CHECK_INPUTS", "1")
    threads = torch.get_num_threads()
    with torch.enable_grad():  # the page's code switches gradients off
        yield
    torch.set_num_threads(threads)


def skip_without(target: str) -> None:
    if not (found := TARGETS[target].available()).ok:
        pytest.skip(found.reason)


@pytest.mark.heavy
@pytest.mark.slow
@pytest.mark.parametrize(
    "target", [pytest.param(one, marks=[pytest.mark.full] if one == "aoti" else []) for one in FOLDERS]
)
def test_the_python_of_the_page_gives_what_the_model_gives(target, captured, place, in_place):
    skip_without(target)
    build(target, captured, place)
    with torch.no_grad():
        expected = captured.module(torch.full((1, 1, 8, 8), 0.5)).numpy().ravel()
    np.testing.assert_allclose(python_scores(target), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("target", ["eager", "inductor"])
def test_the_copied_code_of_a_program_of_torch_computes_as_it_was_measured(target, tmp_path, monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda module: module)
    torch.export.save(torch.export.export(torch.nn.Linear(3, 2), (torch.ones(1, 3),)), tmp_path / "model.pt2")
    code = opening_code(TargetRun(target=target, status=RunStatus.OK, artifact="a/model.pt2"),
                        str(tmp_path / "model.pt2"), warnings=(), threads=torch.get_num_threads())  # fmt: skip
    names: dict[str, object] = {"inputs": [np.ones((1, 3), np.float32)]}
    settings = torch._inductor.config  # noqa: TID251 - what the code sets
    with torch.enable_grad(), settings.patch(freezing=False):  # both are put back
        exec(code, names)
        assert settings.freezing is (target == "inductor")
    assert not names["outputs"].requires_grad


@pytest.mark.heavy
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("g++"), reason="the page's lines are for g++ on Linux")
@pytest.mark.parametrize("target", ["onnxruntime", "openvino", pytest.param("aoti", marks=pytest.mark.full)])
def test_the_cpp_of_the_page_compiles_and_gives_what_python_gives(target, captured, place, in_place):
    program, lines = cpp_of(target)
    needed = lines.said("needs")
    if needed and not os.environ.get(needed):
        pytest.skip(f"{needed} is not set: the package for Python has no headers")
    skip_without(target)
    build(target, captured, place)
    (place / program.said("file")).write_text(program.text, encoding="utf-8")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-e", "-c", lines.text], capture_output=True, text=True, check=False, env=os.environ | {"PATH": path}
    )
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.array(done.stdout.split(), np.float32), python_scores(target), rtol=1e-4, atol=1e-4)
