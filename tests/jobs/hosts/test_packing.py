"""What goes to a host, and what has to be trusted before."""

from pathlib import Path

import pytest

from ace_studio.jobs.hosts.packing import files_to_send, is_no_project, untrusted_files
from ace_studio.records.messages import DoctorRequest, TraceRequest
from ace_studio.records.recipes.recipe import EngineChoice, EvaluateChoice, ModelChoice, Recipe
from ace_studio.records.safe_file import file_sha256

ENGINE = EngineChoice(host="box", files=("data.*",))


@pytest.fixture
def folder(tmp_path) -> Path:
    for name in ("model.py", "helper.py", "data.txt", "private.txt", "weights.safetensors"):
        (tmp_path / name).write_text(name)
    return tmp_path


def names(recipe: Recipe, folder: Path) -> set[str]:
    return {file.path for file in files_to_send(recipe, folder)[0].files}


def test_a_project_goes_whole_and_of_a_home_only_code_and_what_is_named_or_matched(folder, monkeypatch):
    recipe = Recipe(model=ModelChoice(source="model.py"), engine=ENGINE)
    assert "private.txt" in names(recipe, folder)
    monkeypatch.setattr(Path, "home", lambda: folder)
    assert is_no_project(folder) and is_no_project(folder / "Downloads") and not is_no_project(folder / "net")
    assert names(recipe, folder) == {"model.py", "helper.py", "data.txt"}


def test_the_model_and_the_code_that_is_named_have_to_be_trusted(folder):
    recipe = Recipe(
        model=ModelChoice(source="weights.safetensors", entry="model.py:make"),
        evaluate=EvaluateChoice(function="helper.py:score"),
        engine=ENGINE,
    )
    request = TraceRequest(
        job="j", recipe=recipe, folder=str(folder), trusted_sha256=(file_sha256(folder / "model.py"),)
    )
    problems = untrusted_files(request)
    assert [Path(one.where).name for one in problems] == ["helper.py", "weights.safetensors"]
    assert problems[0].details == f"sha256:{file_sha256(folder / 'helper.py')}" and "sent to box" in problems[0].why
    assert untrusted_files(TraceRequest(job="j", recipe=recipe, folder=str(folder), trust_all=True)) == ()
    assert untrusted_files(DoctorRequest(job="j", engine=ENGINE)) == ()
