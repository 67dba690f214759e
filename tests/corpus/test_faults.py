"""Every fault of the machine ends as the manifest says: in words with a remedy, with nothing lost and nothing left."""

import json
import re
import sys
from pathlib import Path

import pytest

from ace_studio.records.errors import ErrorCode
from tests.corpus.faults import TABLES, FaultCase, FaultServer, cases, elsewhere

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="mounts, /proc and limits of Linux")
ROOT = Path(__file__).parents[2]
NEVER = (
    "Traceback (most recent call last)", "did not expect", "report it", "ended without an answer",
    "cannot be recorded in a graph",
)  # fmt: skip


@pytest.fixture(scope="module")
def server(forked_engines):
    """One process that imported torch, for all cases."""
    server = FaultServer(forked_engines)
    yield server
    server.close()


def _parameters():
    for table in TABLES:
        for case in cases(table):
            marks = [getattr(pytest.mark, name) for name in ("slow", "full") if getattr(case, name)]
            yield pytest.param(case, id=f"{table}-{case.name}", marks=marks)


@pytest.mark.parametrize("case", list(_parameters()))
def test_a_fault_ends_as_expected(case: FaultCase, server, tmp_path):
    ended = server.run(case, tmp_path)
    if (tmp_path / "skip").exists():
        pytest.skip(f"this machine does not let the fault be made: {(tmp_path / 'skip').read_text()}")
    assert ended.orphans == 0
    assert ended.codes == [case.exit] * len(ended.codes), ended.output
    assert not [words for words in NEVER if words in ended.output], ended.output
    flat = " ".join(ended.output.split())
    for words in case.words:
        assert words in flat
    for words in case.hidden:
        assert words not in flat
    if 0 < case.exit < 128:
        assert re.search(r"error: ", ended.output) and "remedy: " in ended.output, ended.output
    if case.error:
        assert json.loads(ended.out)["error"]["code"] == case.error
    for pattern in case.left:
        assert [one for one in tmp_path.glob(pattern) if one.is_dir() or one.stat().st_size], pattern
    for pattern in case.gone:
        assert not list(tmp_path.glob(pattern)), pattern
    if (tmp_path / "tmp").is_dir():
        kept = [one.name for one in (tmp_path / "tmp").iterdir() if not one.name.startswith("torchinductor_")]
        assert kept == []


def test_the_corpus_is_large_and_every_case_has_a_name_of_its_own():
    names = [case.name for table in TABLES for case in cases(table)]
    others = [one.name for one in elsewhere()]
    assert len(set(names + others)) == len(names) + len(others)
    assert len(names) + len(others) >= 60


def test_every_test_that_is_named_for_a_fault_exists():
    for one in elsewhere():
        file, _, function = one.tested_by.partition("::")
        assert f"def {function}" in (ROOT / file).read_text("utf-8"), one.tested_by


def test_every_code_of_the_manifest_exists():
    assert {case.error for table in TABLES for case in cases(table)} <= {"", *(code.value for code in ErrorCode)}
