"""Paths there become paths here, in events and in the results that name them, and nothing is written elsewhere."""

import json
from hashlib import sha256
from pathlib import Path

import pytest

from ace_studio.jobs.hosts.places import Places, output_of
from ace_studio.records.bundle import BundledFile
from ace_studio.records.messages import (
    FixRequest,
    JobFinished,
    LogLine,
    RunRequest,
    TraceRequest,
    ValuesRequest,
    decode_event,
    encode_message,
)
from ace_studio.records.recipes.recipe import Recipe

THERE = "/home/u/.cache/ace-studio/engine-here/sessions/ab/1"
PLACES_THERE = {"files_there": f"{THERE}/files", "output_there": f"{THERE}/output"}
BASE = {"job": "j", "recipe": Recipe(), "folder": "/w/project/net"}


@pytest.fixture
def places(tmp_path) -> Places:
    return Places(Path("/w/project/net"), "net", tmp_path / "out", **PLACES_THERE)


def file_of(path: str, content: bytes) -> BundledFile:
    return BundledFile(path=path, sha256=sha256(content).hexdigest(), size=len(content))


def test_texts_of_an_event_name_the_files_here(places, tmp_path):
    told = decode_event(places.here(encode_message(LogLine(text=f"{THERE}/files/net/model.py:3 and {THERE}/output/a"))))
    assert told == LogLine(text=f"/w/project/net/model.py:3 and {tmp_path}/out/a")
    other = encode_message(JobFinished(job="j", output="/elsewhere"))
    assert places.here(other) is other


def test_the_root_is_the_folder_itself_where_the_bundle_begins_there(tmp_path):
    places = Places(Path("/w/net"), ".", None, **PLACES_THERE)
    assert decode_event(places.here(encode_message(LogLine(text=f"{THERE}/files/m.py")))) == LogLine(text="/w/net/m.py")


def test_a_place_in_a_request_is_named_inside_of_the_bundle(places):
    asked = FixRequest(**BASE, file="/w/project/net/model.py", line=3)
    assert places.there(asked).file == "net/model.py"
    assert places.there(FixRequest(**BASE, file="/other/x.py")).file == "/other/x.py"


def test_only_jobs_that_write_have_a_folder_for_results(tmp_path):
    assert output_of(RunRequest(**BASE, output=str(tmp_path))) == tmp_path
    assert output_of(ValuesRequest(**BASE, op_id="x", save=str(tmp_path / "v.npz"))) == tmp_path
    assert output_of(TraceRequest(**BASE)) is None


def test_a_result_is_complete_or_not_there_and_names_the_files_here(places, tmp_path):
    content = json.dumps({"folder": f"{THERE}/files/net"}).encode()
    file = file_of("result.json", content)
    assert not places.has(file)
    with places.writing(file) as stream:
        stream.write(content)
    assert json.loads((tmp_path / "out" / "result.json").read_text()) == {"folder": "/w/project/net"}
    artifact = file_of("artifacts/result.json", content)
    with places.writing(artifact) as stream:
        stream.write(content)
    assert places.has(artifact)  # only the results themselves are rewritten
    damaged = file_of("artifacts/b", b"whole")
    with pytest.raises(OSError, match="did not arrive"), places.writing(damaged) as stream:
        stream.write(b"half")
    assert not places.has(damaged) and len(list((tmp_path / "out").rglob("*"))) == 3


def test_no_path_leaves_the_folder(places):
    with pytest.raises(OSError, match="outside"):
        places.has(file_of("../x", b""))
