"""Past runs, as the session's verbs."""

from __future__ import annotations

from ace_studio.records.messages import (
    JobFinished,
)
from tests.session.fake_engine_link import result, target_run


def test_past_runs_are_listed_opened_again_and_forgotten(opened, engine, model):
    opened.history.load_history()
    assert opened.document.history == ()
    opened.jobs.run()
    opened.apply(JobFinished(job=engine.job, result=result(target_run("eager")), output="/out"))
    (past,) = opened.document.history
    assert (past.title, past.output) == ("model.py", "/out")
    opened.choices.set_entry("other")
    opened.history.open_past_run(past.id)
    assert (opened.document.recipe.model.entry, opened.document.folder) == ("make_model", str(model.parent))
    assert opened.document.recipe_path == ""
    opened.history.remove_past_runs([past.id])
    assert opened.document.history == ()


def test_a_past_run_is_tagged_and_one_that_is_not_there_is_a_problem(opened, engine):
    opened.history.load_history()
    opened.jobs.run()
    opened.apply(JobFinished(job=engine.job, result=result(target_run("eager")), output="/out"))
    (past,) = opened.document.history
    opened.history.set_tags(past.id, ["slow", "fast", "fast"])
    assert opened.document.history[0].tags == ("fast", "slow")
    opened.history.set_tags(past.id + 1, ["x"])
    assert opened.document.problems[-1].what == f"There is no run {past.id + 1} in the history"
