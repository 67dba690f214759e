"""Devices are named honestly, and asking for one that is not there says why."""

import pytest
import torch

from ace_studio.engine import environment
from ace_studio.records.errors import AceError, ErrorCode


def test_the_cpu_is_always_there_and_cuda_always_listed():
    found = {one.name.partition(":")[0]: one for one in environment.devices()}
    assert found["cpu"].available
    assert found["cpu"].memory_bytes > 2**28
    assert found["cuda"].available == torch.cuda.is_available()
    assert found["cuda"].available or found["cuda"].reason


def test_auto_is_cuda_where_there_is_one_else_the_cpu():
    assert environment.choose_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")
    assert environment.choose_device("cpu").type == "cpu"


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
def test_cuda_without_a_gpu_is_an_error_with_a_remedy():
    with pytest.raises(AceError, match="no CUDA device") as caught:
        environment.choose_device("cuda")
    assert caught.value.problem.code is ErrorCode.NOT_INSTALLED
    assert "cpu" in caught.value.problem.remedy


def test_an_unknown_device_is_a_usage_error():
    with pytest.raises(AceError, match="'npu' is not a device"):
        environment.choose_device("npu")


def test_a_result_names_the_machine():
    facts = environment.result_environment(threads=2, device=torch.device("cpu"))
    assert facts["threads"] == 2
    assert facts["cpu_capability"] == torch.backends.cpu.get_cpu_capability()
    assert set(str(facts["cpu_instructions"]).split()) <= environment.cpu_flags()


def test_the_instruction_sets_that_decide_about_kernels_are_recorded(monkeypatch):
    monkeypatch.setattr(environment, "cpu_flags", lambda: frozenset({"avx512_vnni", "fpu", "amx_int8", "avx2", "sse"}))
    facts = environment.result_environment(threads=2, device=torch.device("cpu"))
    assert facts["cpu_instructions"] == "amx_int8 avx2 avx512_vnni"


def test_a_result_names_the_versions():
    facts = environment.result_environment(threads=2, device=torch.device("cpu"))
    assert str(facts["torch"]).split("+")[0] == torch.__version__.split("+")[0]


def test_a_torchvision_of_another_build_is_told_with_the_line_that_mends_it(monkeypatch):
    versions = {"torch": "2.13.0+cpu", "torchvision": "0.28.0"}
    monkeypatch.setattr(environment, "package_versions", lambda: versions)
    (note,) = environment.known_traps()
    assert note.endswith(f"{environment.sys.executable} -m pip install --no-deps torchvision==0.28.0+cpu")
    versions["torchvision"] = "0.28.0+cpu"
    assert environment.known_traps() == ()
