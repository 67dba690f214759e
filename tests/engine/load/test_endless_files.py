"""Files that a stranger made so that looking at them takes without end: each is described, or refused, in seconds."""

import subprocess
import sys
import zipfile

import pytest
import torch

from ace_studio.engine.load.beside import code_beside
from ace_studio.engine.load.entries import list_entries, parse_source
from ace_studio.engine.load.onnx.model import python_names
from ace_studio.engine.load.pickles import unsafe_globals
from ace_studio.records.errors import AceError
from ace_studio.records.messages import StoredTensor

_LOOK = """
import sys
from pathlib import Path
from ace_studio.engine.load import inspect_file
from ace_studio.records.errors import AceError
for path in sys.argv[1:]:
    try:
        inspect_file(Path(path))
    except AceError as error:
        assert error.problem.code == "bad-file", error
    print(path, flush=True)
"""


def _key_of_pairs(levels: int) -> bytes:
    """A table with a key of pairs in pairs, each twice the one before: its hash takes 2 to the ``levels`` steps."""
    pairs = b"".join(b"h%c\x86q%c" % (number, number + 1) for number in range(1, levels))
    return b"\x80\x02}q\x00K\x01q\x01" + pairs + b"Ns."


def _layers(count: int) -> str:
    """Classes in layers of two; each inherits from both of the layer below."""
    pairs = ((f"class {name}{at}(A{at - 1}, B{at - 1}):\n    x = 1\n" for name in "AB") for at in range(1, count))
    return "class A0:\n    pass\nclass B0:\n    pass\n" + "".join("".join(pair) for pair in pairs)


def _weights(path, content):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", content)
        archive.writestr("archive/version", "3\n")


def _write(folder):
    (folder / "comments.pt").write_bytes(b"<!---->" * 580)
    _weights(folder / "key.pt", _key_of_pairs(60))
    (folder / "layers.py").write_text(_layers(45))
    (folder / "many.py").write_text("".join(f"class A{at}(nn.Module):\n    pass\n" for at in range(25_000)))
    (folder / "chains.py").write_text(f"x = a(){'.a()' * 200}\n" * 300)
    with (folder / "holes.py").open("wb") as sparse:
        sparse.write(b"#" + b"a" * 5000)
        sparse.truncate(1 << 36)
    return sorted(folder.iterdir())


def test_each_is_looked_at_in_seconds_and_with_little_memory(tmp_path):
    files = _write(tmp_path)
    done = subprocess.run(
        [sys.executable, "-P", "-c", _LOOK, *map(str, files)], stdout=subprocess.PIPE, text=True, timeout=50, check=True
    )
    assert done.stdout.split() == [str(file) for file in files]


def test_old_weights_are_looked_at_up_to_the_names_of_their_numbers(tmp_path):
    torch.save({"a": torch.zeros(1)}, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    content = (tmp_path / "old.pt").read_bytes()
    assert unsafe_globals(content, tmp_path / "old.pt", most=5) == ()
    end = content.index(b"]q", content.rindex(b"collections"))  # the list of names
    evil = content[: end - 2] + _key_of_pairs(60)
    with pytest.raises(AceError):
        unsafe_globals(evil, tmp_path / "old.pt", most=5)


def test_tuples_that_are_used_again_are_no_fault():
    again = b"".join(b"K%ch\x02s" % at for at in range(2, 200))
    assert unsafe_globals(b"\x80\x02}K\x01K\x01\x86q\x02h\x02s0}" + again + b".", None) == ()


def test_a_damaged_part_of_any_compression_is_a_bad_file(tmp_path):
    with zipfile.ZipFile(tmp_path / "w.pt", "w", compression=zipfile.ZIP_LZMA) as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02}." * 100)
    content = bytearray((tmp_path / "w.pt").read_bytes())
    at = content.index(b"data.pkl") + len(b"data.pkl") + 10
    content[at : at + 5] = b"\xff" * 5
    (tmp_path / "w.pt").write_bytes(content)
    look = subprocess.run([sys.executable, "-P", "-c", _LOOK, tmp_path / "w.pt"], check=False, capture_output=True)
    assert look.returncode == 0, look.stderr


def test_bases_and_calls_are_still_found(tmp_path):
    path = tmp_path / "m.py"
    text = "class A(nn.Module):\n    def __init__(self, x):\n        self.fc = nn.Linear(x, x)\n"
    text += "class B(A): pass\nb = B(1).eval()\n"
    path.write_text(text)
    entries = {one.name: one for one in list_entries(parse_source(path, text.encode()))}
    assert entries["B"].is_module and entries["B"].required_arguments == 1 and entries["b"].kind == "variable"
    assert code_beside(tmp_path / "w.pt", [StoredTensor(name="fc.weight", dtype="float32", shape=(1, 1))]) == (path,)


def test_names_that_become_one_are_told_apart_in_linear_time():
    names = python_names([f"{chr(0x2200 + at % 250)}{chr(0x2200 + at // 250)}" for at in range(60_000)])
    assert len(set(names)) == 60_000 and names[:3] == ["__", "___", "___2"]
    assert all(map(str.isidentifier, names))
