"""What a killed compiler left in Inductor's cache is replaced, and an error of another kind is not hidden."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ace_studio.engine.targets import TARGETS
from ace_studio.engine.torch_private.inductor import damaged_library

COMPILE = """
import torch
from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.flat_graph import flat_graph
from ace_studio.engine.targets.torch.inductor import compile_graph

class Wave(torch.nn.Module):
    def forward(self, x):
        return (x.sin() * 3.0 + x).tanh()

x = torch.randn(3, 37)
run, _ = compile_graph(flat_graph(torch.export.export(Wave(), (x,), strict=False)), threads=1, reporter=Reporter())
with torch.no_grad():
    torch.testing.assert_close(run(x)[0], Wave()(x))
"""
"""Something that the compiler has to write C++ for."""


def compile_in_a_new_process(root: Path, cache: Path) -> None:
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(cache)}
    subprocess.run([sys.executable, "-W", "ignore", "-c", COMPILE], cwd=root, env=environment, check=True)


@pytest.mark.slow
@pytest.mark.skipif(not TARGETS["inductor"].available().ok, reason="no C++ compiler here")
def test_half_written_libraries_in_the_cache_are_built_again(root: Path, tmp_path: Path) -> None:
    compile_in_a_new_process(root, tmp_path)
    libraries = {path: path.stat().st_size for path in tmp_path.rglob("*.main.so")}
    assert libraries, "nothing was compiled into this cache"
    for path in libraries:
        path.write_bytes(path.read_bytes()[:100])
    compile_in_a_new_process(root, tmp_path)
    assert {path: path.stat().st_size for path in tmp_path.rglob("*.main.so")} == libraries


@pytest.mark.parametrize(
    "words", ["file too short", "invalid ELF header", "cannot read file data", "ELF load command past end of file"]
)
def test_a_loader_names_the_file_that_is_half_there(tmp_path, words):
    path = tmp_path / "abc.main.so"
    path.touch()
    assert damaged_library(f"ImportError: {path}: {words}") == path


@pytest.mark.parametrize("message", ["ImportError: {}: undefined symbol: foo", "no C++ compiler", ""])
def test_what_is_no_damage_is_an_error(tmp_path: Path, message: str) -> None:
    path = tmp_path / "abc.so"
    path.touch()
    assert damaged_library(message.format(path)) is None
    assert damaged_library(f"ImportError: {tmp_path / 'gone.so'}: file too short") is None
