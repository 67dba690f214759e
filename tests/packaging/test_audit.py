"""The audit of what is pinned: problems are told, and so is what could not be found out."""

import importlib
import json
import subprocess
import sys

import pytest


@pytest.fixture(scope="module")
def audit(root):
    sys.path.insert(0, str(root / "packaging"))
    yield importlib.import_module("audit")
    sys.path.remove(str(root / "packaging"))


def answer(*dependencies):
    return json.dumps({"dependencies": list(dependencies)})


CLEAN = {"name": "numpy", "version": "2.4.6", "vulns": []}
HOLED = {"name": "pillow", "version": "1.0", "vulns": [{"id": "PYSEC-1", "fix_versions": ["1.1"]}]}


def test_a_known_vulnerability_fails_the_audit_with_its_mended_version(audit, capsys):
    part = audit.read_answer(answer(CLEAN, HOLED), "")
    assert part.lines[0] == "pillow 1.0: PYSEC-1, mended in 1.1"
    assert audit.tell([part]) == 1 and "FAILED   vulnerabilities" in capsys.readouterr().out


def test_packages_without_one_pass(audit):
    part = audit.read_answer(answer(CLEAN), "")
    assert (part.outcome, audit.tell([part])) == (audit.Outcome.PASSED, 0)


@pytest.mark.parametrize(
    "said",
    [
        "ERROR:pip_audit._cli:Connecting to the service took too long",
        "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='x', port=443): Max retries exceeded",
        "pip_audit._service.interface.ServiceError: 403 Client Error: Forbidden",
    ],
)
def test_a_database_that_cannot_be_reached_is_told_and_is_no_success(audit, said, capsys):
    part = audit.read_answer("", said)
    assert (
        part.outcome is audit.Outcome.UNKNOWN and "no database" in part.lines[0] and "nothing is known" in part.lines[0]
    )
    assert audit.tell([part]) == 1 and "UNKNOWN  vulnerabilities" in capsys.readouterr().out


def test_an_answer_about_nothing_is_no_success(audit):
    skipped = {"name": "torch", "skip_reason": "not found"}
    assert audit.read_answer(answer(skipped), "").outcome is audit.Outcome.UNKNOWN
    half = audit.read_answer(answer(CLEAN, skipped), "")
    assert half.outcome is audit.Outcome.UNKNOWN and "nothing is known of the others (torch)" in half.lines[-1]
    assert audit.read_answer(answer(), "").outcome is audit.Outcome.UNKNOWN
    assert audit.read_answer("{}", "").outcome is audit.Outcome.UNKNOWN


def test_a_tool_that_cannot_be_installed_is_told(audit, tmp_path, monkeypatch):
    def fail(*_):
        raise audit.BuildError("pip failed: no network")

    monkeypatch.setattr(audit, "make_environment", fail)
    part = audit.vulnerabilities(tmp_path)
    assert part.outcome is audit.Outcome.UNKNOWN and "nothing is known" in part.lines[0]


def test_a_database_that_never_answers_is_told(audit, tmp_path, monkeypatch):
    def hang(*_, **__):
        raise subprocess.TimeoutExpired("pip-audit", 1)

    monkeypatch.setattr(audit, "make_environment", lambda *_: sys.executable)
    monkeypatch.setattr(subprocess, "run", hang)
    assert audit.vulnerabilities(tmp_path).outcome is audit.Outcome.UNKNOWN


def test_a_package_without_a_licence_fails_the_audit(audit, monkeypatch):
    monkeypatch.setattr(audit, "_licences_of", lambda name, _: [] if name == "numpy" else [{"expression": "MIT"}])
    part = audit.licences()
    assert part.outcome is audit.Outcome.FAILED and any(line.startswith("numpy") for line in part.lines)


def test_the_licences_of_what_is_pinned_permit_it(audit):
    part = audit.licences()
    assert part.outcome is audit.Outcome.PASSED, part.lines


def test_a_pack_that_cannot_be_read_is_told(audit, tmp_path):
    (tmp_path / "pack.tar.gz").write_bytes(b"no archive")
    assert audit.pack(tmp_path / "pack.tar.gz").outcome is not audit.Outcome.PASSED


def test_every_pin_is_looked_at(audit):
    assert {"torch", "pip-audit", "pytest"} <= audit.pins().keys()
