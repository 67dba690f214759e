"""Inductor compiles results of computed sizes, replaces what a killed compiler left, and hides no other error."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch

from ace_studio.engine.quantize.flat_graph import flat_graph
from ace_studio.engine.targets import TARGETS
from ace_studio.engine.torch_private.exporting import DYNAMIC, export_program
from ace_studio.engine.torch_private.inductor import compile_frozen, damaged_library
from ace_studio.engine.torch_private.stored import program_from_json, program_to_json

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


class Boxes(torch.nn.Module):
    """Boxes around the places of two levels of features: [n, 3, h, w] -> [n, boxes, 4]."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 8, 3, 2, 1)
        self.down = torch.nn.Conv2d(8, 8, 3, 2, 1)

    def forward(self, x):
        fine = self.stem(x)
        found = []
        for level in (fine, self.down(fine)):
            rows, columns = level.shape[-2:]
            boxes = level.permute(0, 2, 3, 1).reshape(x.shape[0], -1, 4)
            places = torch.arange(rows).reshape(-1, 1, 1) + torch.arange(columns).reshape(1, -1, 1)
            centres = places.expand(-1, -1, 2).reshape(-1, 1) + boxes[..., :2]
            found.append(torch.cat([centres - boxes[..., 2:], centres + boxes[..., 2:]], -1))
        return torch.cat(found, 1)


class _PassesDoneError(Exception):
    """Inductor has read the sizes of the results; what follows takes a minute."""


def test_results_whose_strides_are_sums_of_products_are_compiled_from_the_cache():
    def stop(_):
        raise _PassesDoneError

    x = torch.randn(2, 3, 20, 36)
    with torch.no_grad(), warnings.catch_warnings(action="ignore"):
        shapes = ({0: DYNAMIC, 2: DYNAMIC, 3: DYNAMIC},)
        program = export_program(Boxes().eval(), (x,), {}, dynamic_shapes=shapes, strict=False)
        weights, constants = dict(program.state_dict), dict(program.constants)
        content = program_to_json(program)
        again = program_from_json(content, state=weights, constants=constants, example=((x,), {}))
    with pytest.raises(_PassesDoneError):
        compile_frozen(flat_graph(again), before_folding=stop)
