"""Every bad file ends as the manifest says: in words about the file, quickly, and without running what is in it."""

import re
import time

import pytest

from ace_studio.cli import follow, run_command
from ace_studio.jobs.client import WorkerClient
from ace_studio.jobs.executors import WorkerExecutor
from ace_studio.records.errors import ErrorCode, Problem, visible
from tests.corpus.files import TABLES, FileCase, cases, run, write

MOST_S = 20.0
"""Seconds until a command has said what is wrong with a file."""
NEVER = ("Traceback (most recent call last)", "did not expect", "report it", "ended without an answer")


@pytest.fixture(scope="module")
def engine(forked_engines):
    """One worker for all files: what one of them breaks shows in the next."""
    client = WorkerClient()
    with WorkerExecutor(client) as executor:
        yield executor, client


@pytest.fixture
def call(engine, monkeypatch, capsys):
    """Runs a command of the command line in the shared worker."""

    class Shared:
        run = staticmethod(engine[0].run)

        def close(self):
            pass

    monkeypatch.setattr(follow, "WorkerExecutor", Shared)

    def run_words(words):
        code = run_command(words)
        return code, *capsys.readouterr()

    return run_words


def _parameters():
    for table in TABLES:
        for case in cases(table):
            yield pytest.param(
                case, id=f"{table}-{case.name}", marks=[pytest.mark.slow] if case.slow or case.kills else []
            )


@pytest.mark.parametrize("case", list(_parameters()))
def test_a_bad_file_ends_as_expected(case: FileCase, call, engine, tmp_path, monkeypatch):
    file = write(case, tmp_path)
    monkeypatch.chdir(tmp_path)
    process, begin = engine[1].pid if engine[1].is_running else None, time.monotonic()
    ended = run(case, tmp_path, file, call)
    assert time.monotonic() - begin < MOST_S
    assert not (tmp_path / "ran").exists(), "the payload ran"
    assert next(iter(ended.codes), "") == case.code, ended.output
    assert (ended.exit == 0) == (case.code == ""), ended.output
    assert ended.inspect in (None, case.inspect), ended.output
    assert not [words for words in NEVER if words in ended.output], ended.output
    assert visible(ended.output) == ended.output
    for words in case.words:
        assert words in ended.output
    for words in case.hidden:
        assert words not in ended.output
    assert case.kills or process in (None, engine[1].pid), "the worker was replaced"
    assert len(re.sub(r"\s+", " ", ended.output)) < 100_000


def test_the_corpus_is_large_and_every_case_has_a_name_of_its_own():
    names = [f"{table}-{case.name}" for table in TABLES for case in cases(table)]
    assert len(names) >= 100
    assert len(set(names)) == len(names)


def test_every_code_of_the_manifest_exists():
    for table in TABLES:
        for case in cases(table):
            assert not case.code or Problem(code=ErrorCode(case.code), what="x")
