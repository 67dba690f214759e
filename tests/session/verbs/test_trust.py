"""Files run only once they are trusted, and trust can be withdrawn."""

from pathlib import Path

from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.messages import FileToTrust, InspectRequest, JobFailed, RunRequest, TraceRequest
from ace_studio.records.sending import Departure, leaving
from ace_studio.session.kept.folders import UserFolders
from ace_studio.session.kept.trust import TrustStore, hash_in
from ace_studio.session.session import Session
from tests.session.fake_engine_link import READY, FakeEngineLink, inspected


def test_trust_is_asked_for_by_the_engine_and_the_job_goes_on_once_it_is_given(
    opened: Session, engine: FakeEngineLink, model: Path, tmp_path: Path
) -> None:
    opened.jobs.run(tmp_path / "out")
    refused = Problem(code=ErrorCode.UNTRUSTED, what="not trusted", where=str(model), details=f"sha256:{'b' * 64}")
    opened.apply(JobFailed(job=engine.job, problems=(refused,)))
    assert opened.document.needs_trust and not opened.document.is_trusted
    opened.apply(inspected(engine.job, sha256="c" * 64))
    assert opened.document.needs_trust
    opened.trust.trust_file()
    again = engine.sent[-1]
    assert isinstance(again, RunRequest) and again.output == str(tmp_path / "out")
    assert {"b" * 64, "c" * 64} <= set(again.trusted_sha256)
    assert not opened.document.needs_trust and opened.document.problems == ()


def test_a_file_trusted_once_stays_trusted_until_it_changes(
    opened: Session, engine: FakeEngineLink, model: Path, tmp_path: Path
) -> None:
    later = Session(engine, folders=UserFolders.inside(tmp_path / "user"))
    later.apply(READY)
    later.files.open_path(model)
    later.apply(inspected(engine.job, path=str(model)))
    assert later.document.is_trusted and not later.document.needs_trust
    later.files.open_path(model)
    later.apply(inspected(engine.job, sha256="changed", path=str(model)))
    assert later.document.needs_trust


def test_only_what_was_shown_is_trusted(session: Session, engine: FakeEngineLink, model: Path) -> None:
    session.apply(READY)
    session.files.open_path(model)
    session.apply(inspected(engine.job, "make_model", sha256="shown", path=str(model)))
    model.write_text("import os  # changed after it was inspected")
    session.trust.trust_file()
    assert [file.sha256 for file in session.trust.files] == ["shown"]


def test_trust_is_given_to_all_files_that_the_opened_one_imports_and_withdrawn_from_all(
    session: Session, engine: FakeEngineLink, model: Path
) -> None:
    names = ("net", "helper")
    files = tuple(FileToTrust(path=f"/code/{name}.py", sha256=name * 12) for name in names)
    session.apply(READY)
    session.files.open_path(model)
    session.apply(inspected(engine.job, "make_model", sha256=files[0].sha256, path=str(model), files=files))
    session.trust.trust_file()
    assert [(file.path, file.sha256) for file in session.trust.files] == [(one.path, one.sha256) for one in files]
    changed = (files[0], FileToTrust(path=files[1].path, sha256="changed"))
    session.files.open_path(model)
    session.apply(inspected(engine.job, "make_model", sha256=files[0].sha256, path=str(model), files=changed))
    assert session.document.needs_trust, "a file that it imports has changed"
    session.files.open_path(model)
    session.apply(inspected(engine.job, "make_model", sha256=files[0].sha256, path=str(model), files=files))
    assert session.document.is_trusted
    session.trust.revoke_trust()
    assert session.trust.files == ()
    assert session.document.needs_trust


def test_a_file_without_code_needs_no_trust(session: Session, engine: FakeEngineLink, model: Path) -> None:
    session.apply(READY)
    session.files.open_path(model)
    session.apply(inspected(engine.job, trust="data"))
    assert session.document.is_trusted and not session.document.needs_trust


def test_trust_that_is_withdrawn_has_to_be_given_again_and_the_next_job_does_not_carry_it(
    opened: Session, engine: FakeEngineLink
) -> None:
    (file,) = opened.trust.files
    opened.trust.revoke_trust(file.sha256)
    assert opened.trust.files == ()
    assert opened.document.needs_trust and not opened.document.is_trusted
    opened.jobs.trace()
    assert engine.sent[-1].trusted_sha256 == ()  # type: ignore[union-attr]


def test_withdrawing_trust_in_another_file_leaves_the_open_one_trusted(opened: Session) -> None:
    opened.trust.revoke_trust("of another file")
    assert opened.document.is_trusted and len(opened.trust.files) == 1


def test_trust_withdrawn_by_another_program_is_noticed_when_the_user_comes_back_and_at_the_next_job(
    opened, engine, tmp_path
):
    assert opened.document.is_trusted
    store = TrustStore(tmp_path / "user" / "data" / "trusted.json")
    store.revoke(store.hashes[0])
    opened.jobs.trace()
    assert engine.sent[-1].trusted_sha256 == ()
    opened.trust.check_trust()
    assert opened.document.needs_trust and not opened.document.is_trusted


def edited(model: Path, engine: FakeEngineLink, session: Session, *, sha256: str) -> None:
    """The user edits the file, comes back to the window, and the engine looks at the file."""
    sent = len(engine.sent)
    model.write_text(f"# {sha256}")
    session.trust.check_trust()
    assert [type(one) for one in engine.sent[sent:]] == [InspectRequest]
    session.apply(inspected(engine.job, "make_model", sha256=sha256, path=str(model)))


def test_an_edit_is_noticed_when_the_user_comes_back_and_asked_about_without_any_failure(
    opened: Session, engine: FakeEngineLink, model: Path
) -> None:
    opened.trust.trust_file()
    edited(model, engine, opened, sha256="e" * 64)
    document = opened.document
    assert document.needs_trust and document.has_changed_since_trust
    assert (document.problems, document.failure) == ((), None)
    sent = len(engine.sent)
    opened.trust.check_trust()
    assert len(engine.sent) == sent, "one look for one change"
    opened.trust.trust_file()
    assert not opened.document.needs_trust


def test_what_is_edited_or_refused_in_a_trusted_folder_goes_on_by_itself(
    opened: Session, engine: FakeEngineLink, model: Path, tmp_path: Path
) -> None:
    opened.trust.trust_folder()
    edited(model, engine, opened, sha256="e" * 64)
    assert opened.document.is_trusted and not opened.document.needs_trust
    opened.jobs.trace()
    helper = Problem(
        code=ErrorCode.UNTRUSTED, what="", where=str(model.with_name("h.py")), details=f"sha256:{'f' * 64}"
    )
    opened.apply(JobFailed(job=engine.job, problems=(helper,)))
    opened.apply(inspected(engine.job, sha256="e" * 64, path=str(model)))
    again = engine.sent[-1]
    assert isinstance(again, TraceRequest) and {"e" * 64, "f" * 64} <= set(again.trusted_sha256)
    assert opened.document.problems == ()
    opened.apply(JobFailed(job=engine.job, problems=(helper,)))
    assert opened.document.needs_trust, "what is refused although it is trusted is not tried for ever"


def test_a_trusted_folder_holds_in_the_next_window_until_it_is_withdrawn(
    opened: Session, engine: FakeEngineLink, model: Path, tmp_path: Path
) -> None:
    opened.trust.trust_folder()
    later = Session(engine, folders=UserFolders.inside(tmp_path / "user"))
    later.apply(READY)
    later.files.open_path(model)
    later.apply(inspected(engine.job, sha256="e" * 64, path=str(model)))
    assert later.document.is_trusted and later.trust.folders == (str(model.parent.resolve()),)
    later.trust.revoke_trust()
    assert later.document.needs_trust and later.trust.folders == ()
    opened.jobs.trace()
    assert "e" * 64 not in engine.sent[-1].trusted_sha256  # type: ignore[union-attr]


def test_trust_until_the_window_closes_is_not_known_to_the_next_one(
    session: Session, engine: FakeEngineLink, model: Path, tmp_path: Path
) -> None:
    session.apply(READY)
    session.files.open_path(model)
    session.apply(inspected(engine.job, "make_model", sha256="e" * 64, path=str(model)))
    session.trust.trust_file(keep=False)
    assert session.document.is_trusted and session.trust.files == ()
    later = Session(engine, folders=UserFolders.inside(tmp_path / "user"))
    later.apply(READY)
    later.files.open_path(model)
    later.apply(inspected(engine.job, sha256="e" * 64, path=str(model)))
    assert later.document.needs_trust


HOST = "eve@far"


def refused_to_send(session: Session, engine: FakeEngineLink, folder: Path, host: str = HOST) -> str:
    """Apply the refusal of a job whose files would go to a host; the key that allows it."""
    files = Departure(folder=folder, files=leaving(sorted(folder.iterdir()), folder))
    problems = files.refusals(host, is_named=False)
    session.apply(JobFailed(job=engine.job, problems=problems))
    session.apply(inspected(engine.job, sha256="shown", path=str(folder / "net.py")))
    return hash_in(problems[0])


def test_files_go_to_a_host_once_the_user_said_so_for_this_list(
    opened: Session, engine: FakeEngineLink, model: Path, tmp_path: Path
) -> None:
    opened.choices.set_choice("engine", host=HOST)
    assert not opened.jobs.may_connect()
    opened.jobs.run(tmp_path / "out")
    key = refused_to_send(opened, engine, model.parent)
    assert opened.document.needs_trust
    opened.trust.trust_file()
    again = engine.sent[-1]
    assert isinstance(again, RunRequest) and key in again.trusted_sha256 and again.word.hosts == ()
    assert opened.jobs.may_connect()
    opened.choices.set_choice("engine", host="eve@other")
    assert not opened.jobs.may_connect()


def test_trust_in_the_folder_of_a_file_sends_nothing(
    opened: Session, engine: FakeEngineLink, model: Path, tmp_path: Path
) -> None:
    opened.choices.set_choice("engine", host=HOST)
    opened.jobs.run(tmp_path / "out")
    key = refused_to_send(opened, engine, model.parent)
    sent = len(engine.sent)
    opened.trust.trust_folder()
    assert len(engine.sent) == sent and opened.document.needs_trust
    assert key not in TrustStore(UserFolders.inside(tmp_path / "user").trust).hashes


def test_a_secret_is_no_question_and_the_job_has_failed(
    opened: Session, engine: FakeEngineLink, model: Path, tmp_path: Path
) -> None:
    (model.parent / "id_rsa").write_text("canary")
    opened.jobs.run(tmp_path / "out")
    files = Departure(folder=model.parent, files=leaving([model.parent / "id_rsa"], model.parent))
    opened.apply(JobFailed(job=engine.job, problems=files.refusals(HOST, is_named=True)))
    assert not opened.document.needs_trust and opened.document.problems[0].code is ErrorCode.UNTRUSTED


def test_a_host_of_the_settings_goes_with_every_request(
    opened: Session, engine: FakeEngineLink, tmp_path: Path
) -> None:
    opened.set_setting("hosts", "a@b, c@d")
    opened.jobs.run(tmp_path / "out")
    request = engine.sent[-1]
    assert isinstance(request, RunRequest) and request.word.hosts == ("a@b", "c@d")
