"""What a file is by its first bytes."""

import hashlib
import os

import pytest

from ace_studio.engine.load import inspect_file
from ace_studio.engine.load.sniff import HEAD_BYTES, checked_sha256, is_text, size_of
from ace_studio.records.errors import AceError, ErrorCode
from tests.engine.load.samples import refusal

HTML = b"<!DOCTYPE html>\n<html><head><title>Sign in</title></head></html>"


LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 1234\n"


@pytest.mark.parametrize("name", ["m.pt", "m.safetensors", "m.pt2", "m.onnx", "m.py", "m.pth"])
@pytest.mark.parametrize(
    ("content", "words"),
    [(HTML, "web page"), (b"  \n" + HTML.lower(), "Sign in".lower()), (LFS, "1234 bytes"), (b"", "is empty")],
    ids=["html", "spaces before html", "lfs", "empty"],
)
def test_what_often_lies_where_a_model_should_be_is_named(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    assert words in refusal(tmp_path / name).replace("Sign in", "sign in")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"hello world\nthis is text", "plain text"),
        (b"\x1f\x8b" + b"\0" * 100, "gzip"),
        (b"\0" * 257 + b"ustar" + b"\0" * 300, "tar archive"),
        (b"\x89HDF\r\n\x1a\n" + b"\0" * 9, "HDF5"),
        (b"\xff\xfe\xfd" * 100, "no known format"),
        (b"PK\x03\x04" + b"\0" * 100, "damaged or incomplete zip"),
        (b"\x80\x02\x8a", "damaged or incomplete pickle"),
    ],
)
def test_a_file_named_pt_that_is_something_else_is_told_what_it_is(tmp_path, content, words):
    (tmp_path / "m.pt").write_bytes(content)
    assert words in refusal(tmp_path / "m.pt")


def test_things_that_are_no_files_are_told(tmp_path):
    with pytest.raises(AceError) as caught:
        inspect_file(tmp_path / "nothing.pt")
    assert caught.value.problem.code is ErrorCode.NOT_FOUND
    os.mkfifo(tmp_path / "pipe.pt")
    assert "not a regular file" in refusal(tmp_path / "pipe.pt")


@pytest.mark.parametrize(
    ("head", "is_it"),
    [
        (b"hello\n", True),
        ("ü".encode(), True),
        (b"\xef\xbb\xbfhello", True),
        (b"a\x00b", False),
        (b"\xff", False),
        (b"a" * (HEAD_BYTES - 1) + "ü".encode()[:1], True),
    ],
    ids=["text", "UTF-8", "with a mark", "control character", "no UTF-8", "character cut at the end of the head"],
)
def test_text_is_told_from_other_bytes(head, is_it):
    assert is_text(head) is is_it


def test_a_file_that_cannot_be_hashed_is_a_bad_file(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    assert checked_sha256(tmp_path / "a") == hashlib.sha256(b"abc").hexdigest()
    with pytest.raises(AceError) as caught:
        checked_sha256(tmp_path / "gone")
    assert caught.value.problem.code is ErrorCode.BAD_FILE


def test_a_file_that_is_gone_when_its_size_is_asked_for_is_not_found(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    assert size_of(tmp_path / "a") == 3
    with pytest.raises(AceError) as caught:
        size_of(tmp_path / "gone")
    assert caught.value.problem.code is ErrorCode.NOT_FOUND


def test_a_pickle_of_a_protocol_that_python_does_not_know_is_named(tmp_path):
    (tmp_path / "w.pt").write_bytes(b"\x80\x63}.")
    with pytest.raises(AceError, match="protocol 99"):
        inspect_file(tmp_path / "w.pt")
