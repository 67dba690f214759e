"""What a pickle would import, found in its opcodes."""

import zipfile
from pathlib import Path

import pytest
import torch

from ace_studio.engine.load import inspect_file
from ace_studio.engine.load.pickles import is_legacy_torch, unsafe_globals
from ace_studio.records.errors import AceError, ErrorCode
from tests.engine.load.samples import Payload, Plain, refusal, write_bare_pickle


def test_the_names_that_unpickling_would_call_agree_with_torch(tmp_path):
    torch.save(Plain(), tmp_path / "m.pt")
    ours = {line.removeprefix("imports and may call ") for line in inspect_file(tmp_path / "m.pt").would_run}
    assert ours == set(torch.serialization.get_unsafe_globals_in_checkpoint(tmp_path / "m.pt"))


def test_a_memo_number_that_would_ask_for_gigabytes_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "w.pt", "w") as archive:
        archive.writestr("m/data.pkl", b"\x80\x02Nr\xff\xff\xff\x7f.")
    assert "damaged or incomplete pickle" in refusal(tmp_path / "w.pt")


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_a_pickle_that_would_run_code_says_what_and_runs_nothing(tmp_path, protocol):
    mark = tmp_path / "mark"
    torch.save(Payload(mark), tmp_path / "evil.pt", pickle_protocol=protocol)
    write_bare_pickle(tmp_path / "bare.pt", Payload(mark))
    for name in ("evil.pt", "bare.pt"):
        report = inspect_file(tmp_path / name)
        assert report.trust == "code"
        assert any("mkdir" in line for line in report.would_run)
    assert not mark.exists()


@pytest.mark.parametrize(
    ("content", "names"),
    [
        (b"\x80\x02cos\nsystem\n.", ("os.system",)),
        (b"(Vls\nios\nsystem\n.", ("os.system",)),
        (b"\x80\x04\x8c\x02os\x94\x8c\x06system\x94h\x00h\x01\x93.", ("os.system",)),
        (b"\x80\x04\x93.", ("a name that is only known at run time",)),
        (b"\x80\x02\x82\x05.", ("extension 5",)),
        (b"\x80\x02ccollections\nOrderedDict\n.", ()),
    ],
    ids=["global", "inst", "stack global from the memo", "stack global without names", "extension", "tensors only"],
)
def test_every_opcode_that_imports_is_listed(content, names):
    assert unsafe_globals(content, Path("w.pt")) == names


@pytest.mark.parametrize("content", [b"", b"<html>", b"\x80\x02\x8a", b"\x80\x02N"])
def test_a_pickle_that_breaks_off_is_refused(content):
    with pytest.raises(AceError) as caught:
        unsafe_globals(content, Path("w.pt"))
    assert caught.value.problem.code is ErrorCode.BAD_FILE


def test_the_old_format_of_torch_is_recognized(tmp_path):
    torch.save({}, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    assert is_legacy_torch((tmp_path / "old.pt").read_bytes())
    assert not is_legacy_torch(b"\x80\x02N.")
