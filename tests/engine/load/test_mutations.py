"""Good files, damaged at random: every one loads or is told, nothing runs that is not trusted, and it ends soon."""

import time
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from ace_studio.engine.load import inspect_file, read_state_dict
from ace_studio.records.errors import AceError
from tests.engine.load.samples import Payload, Plain, check_wording, load, write_net, write_pt2, write_pt2_with_payload

LONGEST_S = 10


@pytest.fixture(scope="module")
def originals(tmp_path_factory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("good")
    write_net(folder)
    save_file(Plain().state_dict(), folder / "w.safetensors")
    torch.save(Plain().state_dict(), folder / "zip.pt")
    torch.save(Plain().state_dict(), folder / "legacy.pt", _use_new_zipfile_serialization=False)
    torch.save(Payload(folder / "mark"), folder / "evil.pt")
    write_pt2(folder / "m.pt2")
    write_pt2_with_payload(folder / "evil.pt2", folder / "mark")
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@st.composite
def damages(draw: st.DrawFn, content: bytes) -> bytes:
    """Bit flips, cuts and splices."""
    changed = bytearray(content)
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["flip", "cut", "splice", "overwrite"]))
        place = draw(st.integers(0, max(0, len(changed) - 1)))
        if kind == "flip" and changed:
            changed[place] ^= 1 << draw(st.integers(0, 7))
        elif kind == "cut":
            del changed[place : place + draw(st.integers(1, len(content)))]
        elif kind == "splice":
            start = draw(st.integers(0, len(content) - 1))
            changed[place:place] = content[start : start + draw(st.integers(1, 200))]
        else:
            changed[place : place + 4] = draw(st.binary(min_size=4, max_size=4))
    return bytes(changed)


def attempt(action, *args, **kwargs) -> None:
    """Do it; an AceError with a cause is as good as success."""
    started = time.monotonic()
    try:
        action(*args, **kwargs)
    except AceError as error:
        check_wording(error)
    assert time.monotonic() - started < LONGEST_S


@pytest.mark.filterwarnings("ignore")  # what torch says of damaged files is not the point
@pytest.mark.parametrize("name", ["w.safetensors", "zip.pt", "legacy.pt", "evil.pt", "m.pt2", "evil.pt2", "net.py"])
@given(data=st.data())
@settings(max_examples=20, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_file_is_read_or_refused(tmp_path: Path, originals, name, data):
    path = tmp_path / name
    path.write_bytes(data.draw(damages(originals[name])))
    attempt(inspect_file, path)
    attempt(load, tmp_path, name, trusted=False)
    if name.endswith((".pt", ".safetensors")):
        attempt(read_state_dict, path)
    assert not list(tmp_path.glob("**/mark"))


@given(content=st.binary(max_size=300), name=st.sampled_from(["a.pt", "a.safetensors", "a.onnx", "a.pt2", "a.py", "a"]))
@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rubbish_is_refused_whatever_it_is_called(tmp_path, content, name):
    (tmp_path / name).write_bytes(content)
    attempt(inspect_file, tmp_path / name)
