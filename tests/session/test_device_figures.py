"""Figures of devices reach the run's folder, its report and the history, and no other run's."""

import pytest
from msgspec.structs import replace

from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.results import REPORT_NAME, RESULT_NAME, encode_result
from ace_studio.session.device_figures import keep_figures, run_in, trust_in
from ace_studio.session.kept.history import History
from ace_studio.session.kept.trust import TrustStore
from tests.jobs.devices.runs import result_of, run_of
from tests.records.results.test_on_devices import figure

RESULT = result_of(run_of(), run_of(precision="int8-static"))


@pytest.fixture
def history(tmp_path):
    return History(tmp_path / "history.sqlite")


def store(folder, result, history):
    folder.mkdir(exist_ok=True)
    (folder / RESULT_NAME).write_bytes(encode_result(result))
    return history.add(result, recipe_toml="", title="m", output=str(folder.absolute()))


def test_figures_are_added_to_the_folder_the_report_and_the_history(tmp_path, history):
    number = store(tmp_path / "out", RESULT, history)
    other = store(tmp_path / "other", replace(RESULT, seconds=2.0), history)
    (tmp_path / "out" / REPORT_NAME).write_text("<body>report</body>")
    keep_figures(tmp_path / "out", RESULT, {1: figure()}, history)
    found = keep_figures(tmp_path / "out", RESULT, {0: figure(4.0)}, history)
    assert [len(run.devices) for run in found.runs] == [1, 1]
    assert run_in(tmp_path / "out") == found == history.get(number).result
    assert "2.000" in (tmp_path / "out" / REPORT_NAME).read_text() and not history.get(other).result.runs[0].devices


def test_figures_of_another_run_are_not_put_into_the_folder(tmp_path, history):
    store(tmp_path / "out", RESULT, history)
    store(tmp_path / "out", replace(RESULT, seconds=5.0), history)
    with pytest.raises(AceError) as caught:
        keep_figures(tmp_path / "out", RESULT, {0: figure()}, history)
    assert caught.value.problem.what == "The artifacts of this run are gone"


def test_a_folder_without_a_result_says_so(tmp_path):
    with pytest.raises(AceError) as caught:
        run_in(tmp_path)
    assert caught.value.problem.code is ErrorCode.NOT_FOUND
    (tmp_path / RESULT_NAME).write_text("{")
    with pytest.raises(AceError) as caught:
        run_in(tmp_path)
    assert caught.value.problem.code is ErrorCode.BAD_FILE


def test_code_is_trusted_that_a_run_of_the_history_wrote_or_the_user_trusts(tmp_path, history):
    out, store = tmp_path / "out", TrustStore(tmp_path / "trusted.json")
    made = result_of(run_of("aoti", artifact="a.pt2", artifact_sha256="a" * 64))
    is_trusted = trust_in(out, history, store)
    out.mkdir()
    (out / RESULT_NAME).write_bytes(encode_result(made))  # a folder that somebody made says so itself
    assert not is_trusted("a" * 64)
    history.add(made, recipe_toml="", title="m", output=str(out))
    assert is_trusted("a" * 64) and not is_trusted("b" * 64) and not is_trusted("")
    store.trust("/b.pt2", "b" * 64)
    assert is_trusted("b" * 64) and not trust_in(tmp_path / "other", history, store)("a" * 64)
