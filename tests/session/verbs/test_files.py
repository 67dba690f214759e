"""Opening, saving and restoring, as the session's verbs."""

import os
from pathlib import Path

import pytest

from ace_studio.records.errors import ErrorCode
from ace_studio.records.messages import InspectRequest, JobCancelled, JobFinished
from ace_studio.records.recipes.file import read_recipe, write_recipe
from ace_studio.records.recipes.holding import holding
from ace_studio.records.recipes.recipe import Goal, ModelChoice, Recipe
from ace_studio.records.tensors import TensorSpec
from ace_studio.session.document import JobKind
from ace_studio.session.kept.folders import UserFolders
from ace_studio.session.session import Session
from tests.session.fake_engine_link import READY, FakeEngineLink, captured, inspected, result, target_run


def test_opening_what_is_not_there_is_a_problem_and_changes_nothing_else(opened: Session) -> None:
    before = opened.document
    opened.files.open_path("/nowhere/model.py")
    assert [problem.code for problem in opened.document.problems] == [ErrorCode.NOT_FOUND]
    assert opened.document.recipe is before.recipe
    opened.view.dismiss_problem(0)
    assert opened.document.problems == ()


def test_code_is_opened_together_with_its_weights_in_either_order(session: Session, model: Path) -> None:
    session.files.open_paths([str(model.with_name("net.pth")), str(model)])
    assert session.document.recipe.model == ModelChoice(source="model.py", weights="net.pth")


def test_opening_a_recipe_takes_its_choices_as_they_are(session: Session, engine: FakeEngineLink, model: Path) -> None:
    recipe = Recipe(model=ModelChoice(source="model.py", entry="other"), goal=Goal(max_drop=0.02))
    write_recipe(recipe, model.with_name("r.toml"))
    session.apply(READY)
    session.files.open_path(model.with_name("r.toml"))
    session.apply(inspected(engine.job, "make_model", "evaluate"))
    assert session.document.recipe == recipe
    assert session.document.recipe_path == str(model.with_name("r.toml"))


def test_a_broken_recipe_gives_all_its_problems(opened: Session, tmp_path: Path) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text('format = 1\n[model]\nsource = 3\n[goal]\nmax_drop = "much"\n')
    opened.files.open_path(broken)
    assert len(opened.document.problems) >= 2
    assert opened.document.recipe.model.source == "model.py"


def test_what_was_asked_for_the_file_before_does_not_reach_the_new_one(
    opened: Session, engine: FakeEngineLink, model: Path
) -> None:
    opened.jobs.trace()
    old_job = engine.job
    other = model.with_name("other.py")
    other.write_text("")
    opened.files.open_path(other)
    assert engine.cancelled == [old_job]
    opened.apply(captured(old_job, "a", "b"))
    assert opened.document.graph is None
    opened.apply(JobCancelled(job=old_job))
    assert isinstance(engine.sent[-1], InspectRequest) and engine.sent[-1].path == str(other)
    assert opened.document.activity.verb is JobKind.INSPECT


def test_saving_writes_the_recipe_and_what_is_saved_can_be_opened(opened: Session, model: Path) -> None:
    opened.choices.set_goal(Goal(max_drop=0.1))
    assert not opened.files.save_recipe()
    assert opened.document.problems[-1].code is ErrorCode.USAGE
    assert opened.files.save_recipe(model.with_name("mine.toml"))
    assert not opened.document.is_dirty
    assert read_recipe(model.with_name("mine.toml")) == opened.document.recipe
    opened.choices.undo()
    assert opened.document.is_dirty
    assert opened.files.save_recipe()


def test_saving_elsewhere_keeps_pointing_at_the_same_files_undo_included(
    opened: Session, model: Path, tmp_path: Path
) -> None:
    opened.choices.set_rows([{"x": TensorSpec(shape=(1,), values="x.npy")}])
    opened.choices.set_goal(Goal(max_drop=0.1))
    recipes = tmp_path / "recipes"
    recipes.mkdir()
    assert opened.files.save_recipe(recipes / "mine.toml")
    assert opened.document.folder == str(recipes)
    assert opened.document.recipe.model.source == "../project/model.py"
    assert opened.document.recipe.inputs.rows[0]["x"].values == "../project/x.npy"
    opened.choices.undo()
    opened.choices.undo()
    assert opened.document.recipe.model.source == "../project/model.py"


def test_a_recipe_that_cannot_be_written_is_a_problem(opened: Session, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert not opened.files.save_recipe(tmp_path / "file" / "recipe.toml")
    assert opened.document.problems


def another_window(folder: Path) -> tuple[Session, FakeEngineLink]:
    engine = FakeEngineLink()
    session = Session(engine, folders=UserFolders.inside(folder / "user"))
    session.apply(READY)
    return session, engine


def test_choices_without_a_recipe_come_back_whenever_the_model_is_opened_until_they_are_saved(
    opened: Session, model: Path, tmp_path: Path
) -> None:
    fresh = opened.document.recipe
    opened.choices.set_goal(Goal(max_drop=0.25))
    for _ in range(2):
        later, engine = another_window(tmp_path)
        later.files.open_path(model)
        later.apply(inspected(engine.job, "make_model", path=str(model)))
        assert later.document.recipe == opened.document.recipe and later.document.is_dirty
    later.choices.undo()
    assert later.document.recipe == fresh and not later.document.is_dirty
    later.choices.redo()
    assert later.files.save_recipe(model.with_name("mine.toml"))
    last, _ = another_window(tmp_path)
    last.files.open_path(model)
    assert last.document.recipe.goal == Goal() and not last.document.is_dirty


def test_choices_come_back_to_a_recipe_and_a_file_changed_meanwhile_is_asked_about(
    opened: Session, model: Path, tmp_path: Path
) -> None:
    path = model.with_name("mine.toml")
    opened.files.save_recipe(path)
    opened.choices.set_goal(Goal(max_drop=0.25))
    text = path.read_text()
    path.write_text(text + "\n[measure]\nrounds = 70\n")
    later, _ = another_window(tmp_path)
    later.files.open_path(path)
    assert later.document.recipe.goal.max_drop == 0.25 and later.document.is_dirty
    assert not later.files.save_recipe()
    assert later.document.disk_change is not None and "rounds = 70" in later.document.disk_change.text
    later.files.take_from_disk()
    assert later.document.recipe.measure.rounds == 70 and not later.document.is_dirty


def test_choices_of_a_past_run_do_not_replace_those_of_its_model(
    opened: Session, engine: FakeEngineLink, model: Path, tmp_path: Path
) -> None:
    opened.choices.set_goal(Goal(max_drop=0.25))
    opened.jobs.run(tmp_path)
    opened.apply(JobFinished(job=engine.job, result=result(target_run("eager")), output=""))
    (run,) = opened.history.store.list()
    opened.history.open_past_run(run.id)
    opened.choices.set_goal(Goal(max_drop=0.5))
    opened.files.open_path(model)
    assert opened.document.recipe.goal.max_drop == 0.25


def test_declined_choices_are_not_offered_again_and_still_come_back(
    opened: Session, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened.choices.set_goal(Goal(max_drop=0.25))
    opened.close()
    monkeypatch.setattr("ace_studio.session.kept.autosave.is_alive", lambda mark: False)
    later, _ = another_window(tmp_path)
    assert len(later.files.restorable()) == 1
    later.files.decline_restorable()
    assert later.files.restorable() == ()
    later.files.open_path(model)
    assert later.document.recipe.goal.max_drop == 0.25


def test_unsaved_choices_survive_a_crash_and_can_be_taken_back(
    opened: Session, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened.choices.set_goal(Goal(max_drop=0.25))
    opened.close()
    monkeypatch.setattr("ace_studio.session.kept.autosave.is_alive", lambda mark: False)
    later = Session(FakeEngineLink(), folders=UserFolders.inside(tmp_path / "user"))
    (saved,) = later.files.restorable()
    later.files.restore(saved)
    assert later.document.recipe == opened.document.recipe
    assert later.document.folder == str(model.parent)
    assert later.document.is_dirty
    later.choices.undo()
    assert not later.document.is_dirty and later.files.restorable() == ()


def test_a_running_window_is_not_restored(opened: Session, tmp_path: Path) -> None:
    opened.choices.set_goal(Goal(max_drop=0.25))
    other = Session(FakeEngineLink(), folders=UserFolders.inside(tmp_path / "user"))
    assert other.files.restorable() == ()


def test_exporting_copies_the_artifact_of_a_run(opened: Session, engine: FakeEngineLink, tmp_path: Path) -> None:
    output = tmp_path / "out"
    output.mkdir()
    (output / "m.onnx").write_bytes(b"onnx")
    opened.jobs.run(output)
    opened.apply(
        JobFinished(job=engine.job, result=result(target_run("onnxruntime", artifact="m.onnx")), output=str(output))
    )
    assert opened.files.export_artifact(0, tmp_path / "copy.onnx") == (tmp_path / "copy.onnx",)
    assert (tmp_path / "copy.onnx").read_bytes() == b"onnx"
    assert opened.files.export_artifact(5, tmp_path / "x") == ()
    assert opened.document.problems[-1].code is ErrorCode.NOT_FOUND


def test_a_recipe_with_a_byte_order_mark_is_opened_as_the_command_line_does(session: Session, model: Path) -> None:
    path = model.with_name("r.toml")
    path.write_bytes(b'\xef\xbb\xbfformat = 1\n[model]\nsource = "model.py"\n')
    session.files.open_path(path)
    assert not session.document.problems and session.document.recipe == read_recipe(path)
    session.choices.set_goal(Goal(max_drop=0.1))
    assert session.files.save_recipe() and path.read_bytes().startswith(b"\xef\xbb\xbfformat")


def test_a_recipe_that_somebody_else_is_changing_is_not_saved_and_who_it_is_is_told(
    opened: Session, model: Path
) -> None:
    path = model.with_name("mine.toml")
    opened.files.save_recipe(path)
    before = path.read_bytes()
    opened.choices.set_goal(Goal(max_drop=0.1))
    with holding(path):
        assert not opened.files.save_recipe()
    assert f"process {os.getpid()} of user" in opened.document.problems[-1].why
    assert path.read_bytes() == before and opened.document.is_dirty
    assert opened.files.save_recipe()
