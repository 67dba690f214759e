"""The file of a result: written, read back, and refused if it is something else."""

import msgspec
import pytest

from ace_studio.records.results import Result, ResultStatus, SearchStep, decode_result, encode_result

RESULT = Result(
    status=ResultStatus.GOAL_NOT_MET, fingerprint="f", environment={"threads": 1},
    search=(SearchStep(target="t", low="int8-static"),),
)  # fmt: skip


def test_a_result_comes_back_as_it_was_and_ends_with_a_newline():
    text = encode_result(RESULT)
    assert decode_result(text) == RESULT
    assert text.endswith(b"}\n")


def test_a_result_of_an_older_version_lacks_fields_and_is_read():
    older = msgspec.json.decode(encode_result(RESULT))
    del older["search"][0]["status"]
    del older["worst"]
    assert decode_result(msgspec.json.encode(older)) == RESULT


@pytest.mark.parametrize("text", [b"[]", b'{"status": "fine", "fingerprint": "", "environment": {}}', b"{}"])
def test_what_is_no_result_is_refused(text):
    with pytest.raises(msgspec.ValidationError):
        decode_result(text)
