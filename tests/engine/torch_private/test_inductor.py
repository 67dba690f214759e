"""Inductor compiles results of computed sizes, replaces what a killed compiler left, and hides no other error."""

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


@pytest.mark.full  # two builds in fresh processes; the messages of loaders by which damage is known are tried below
@pytest.mark.slow
@pytest.mark.skipif(not TARGETS["inductor"].available().ok, reason="no C++ compiler here")
def test_half_written_libraries_in_the_cache_are_built_again(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch._inductor import config  # noqa: TID251 - headers are not compiled for one test

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS", "0")  # they would be compiled for this cache alone
    with config.patch(cpp_cache_precompile_headers=False):
        exec(COMPILE, {"__name__": __name__})
    libraries = {path: path.stat().st_size for path in tmp_path.rglob("*.main.so")}
    assert libraries, "nothing was compiled into this cache"
    for path in libraries:
        half = path.read_bytes()[:100]
        path.unlink()  # this process has it open
        path.write_bytes(half)
    # A process that has loaded a library does not read it again.
    subprocess.run([sys.executable, "-W", "ignore", "-c", COMPILE], cwd=root, check=True)
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
    """Boxes of two levels of features: [n, 8, h, w] -> [n, boxes, 4]."""

    def __init__(self) -> None:
        super().__init__()
        self.down = torch.nn.Conv2d(8, 8, 3, 2, 1)

    def forward(self, x):
        return torch.cat([one.permute(0, 2, 3, 1).reshape(x.shape[0], -1, 4) for one in (x, self.down(x))], 1)


class _PassesDoneError(Exception):
    """Inductor has read the sizes of the results; what follows takes a minute."""


def test_results_whose_strides_are_sums_of_products_are_compiled_from_the_cache():
    def stop(_):
        raise _PassesDoneError

    x = torch.randn(2, 8, 20, 36)
    with torch.no_grad(), warnings.catch_warnings(action="ignore"):
        shapes = ({0: DYNAMIC, 2: DYNAMIC, 3: DYNAMIC},)
        program = export_program(Boxes().eval(), (x,), {}, dynamic_shapes=shapes, strict=False)
        weights, constants = dict(program.state_dict), dict(program.constants)
        content = program_to_json(program)
        again = program_from_json(content, state=weights, constants=constants, example=((x,), {}))
    with pytest.raises(_PassesDoneError):
        compile_frozen(flat_graph(again), before_folding=stop)
