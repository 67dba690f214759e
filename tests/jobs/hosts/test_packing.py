"""What goes to a host, and what has to be trusted before."""

from pathlib import Path

import pytest

from ace_studio.jobs.hosts.packing import checked_departure, is_no_project
from ace_studio.records.errors import Problem
from ace_studio.records.messages import TraceRequest
from ace_studio.records.recipes.recipe import EngineChoice, EvaluateChoice, ModelChoice, Recipe
from ace_studio.records.safe_file import file_sha256
from ace_studio.records.sending import Word

ENGINE = EngineChoice(host="box", files=("data.*",))
WORD = Word(hosts=("box",))


@pytest.fixture
def folder(tmp_path) -> Path:
    for name in ("model.py", "helper.py", "data.txt", "private.txt", "weights.safetensors"):
        (tmp_path / name).write_text(name)
    return tmp_path


def refused(request: TraceRequest) -> tuple[Problem, ...]:
    return checked_departure(request)[1]


def names(recipe: Recipe, folder: Path) -> set[str]:
    departure, _ = checked_departure(TraceRequest(job="j", recipe=recipe, folder=str(folder)))
    return {file.name.name for file in departure.files}


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
        job="j", recipe=recipe, folder=str(folder), trusted_sha256=(file_sha256(folder / "model.py"),), word=WORD
    )
    problems = refused(request)
    assert [Path(one.where).name for one in problems] == ["helper.py", "weights.safetensors"]
    assert problems[0].details == f"sha256:{file_sha256(folder / 'helper.py')}" and "sent to box" in problems[0].why
    assert refused(TraceRequest(job="j", recipe=recipe, folder=str(folder), trust_all=True, word=WORD)) == ()


def test_the_users_yes_holds_for_the_files_that_were_listed_and_for_no_others(folder):
    def request(*trusted: str) -> TraceRequest:
        recipe = Recipe(model=ModelChoice(source="timm:resnet18"), engine=ENGINE)
        return TraceRequest(job="j", recipe=recipe, folder=str(folder), trust_all=True, trusted_sha256=trusted)

    (question,) = refused(request())
    key = question.details.splitlines()[0].removeprefix("sha256:")
    assert refused(request(key)) == ()
    (folder / "model.py").write_text("edited")
    assert refused(request(key)) == ()
    (folder / "more.txt").write_text("")
    assert [one.what for one in refused(request(key))] == ["Files would be sent to box"]


def test_a_model_that_is_named_in_a_roundabout_way_has_to_be_trusted_too(folder):
    recipe = Recipe(model=ModelChoice(source=f"../{folder.name}/weights.safetensors"), engine=ENGINE)
    (problem,) = refused(TraceRequest(job="j", recipe=recipe, folder=str(folder), word=WORD))
    assert problem.what == "weights.safetensors has not been trusted"


def test_a_link_to_a_home_is_that_home(folder, tmp_path_factory, monkeypatch):
    monkeypatch.setattr(Path, "home", lambda: folder)
    called = tmp_path_factory.mktemp("elsewhere") / "project"
    called.symlink_to(folder)
    assert is_no_project(called)
