"""What is looked at: ops, graph breaks, runs, lines of code."""

from ace_studio.records.messages import JobFinished
from ace_studio.session.session import Session
from tests.session.fake_engine_link import FakeEngineLink, captured, result, target_run


def test_only_ops_of_the_graph_can_be_selected_and_a_new_graph_keeps_those_it_has(
    opened: Session, engine: FakeEngineLink
) -> None:
    opened.jobs.trace()
    opened.apply(captured(engine.job, "a", "b"))
    opened.apply(JobFinished(job=engine.job))
    opened.view.select(["b", "nothing", "a", "b"])
    assert opened.document.selection.op_ids == ("b", "a")
    opened.jobs.trace()
    opened.apply(captured(engine.job, "b", "c"))
    assert opened.document.selection.op_ids == ("b",)


def test_all_ops_are_selected_as_the_graph_holds_them(opened: Session, engine: FakeEngineLink) -> None:
    opened.jobs.trace()
    opened.apply(captured(engine.job, "a", "b"))
    opened.view.select(["a", "b"])
    assert opened.document.selection.op_ids is opened.document.graph.op_id
    opened.view.select(["b", "a"])
    assert opened.document.selection.op_ids == ("b", "a")


def test_selecting_a_run_that_is_not_there_selects_none(opened: Session, engine: FakeEngineLink) -> None:
    opened.jobs.run()
    opened.apply(JobFinished(job=engine.job, result=result(target_run("eager")), output=""))
    opened.view.select_run(0)
    assert opened.document.selection.run == 0
    opened.view.select_run(7)
    assert opened.document.selection.run is None


def test_a_break_is_selected_with_all_its_rows_and_its_line(partial):
    partial.view.select_seam(0)
    chosen = partial.document.selection
    assert chosen.op_ids == ("break_0", "break_2")
    assert (chosen.seam, chosen.place) == (0, ("/models/net.py", 10))


def test_a_selected_row_of_the_graph_is_its_break(partial):
    partial.view.select(["break_1"])
    assert partial.document.selection.seam == 1
    partial.view.select(["break_1", "p0_linear_0"])
    assert partial.document.selection.seam is None
    partial.view.select_seam(7)
    assert partial.document.selection.op_ids == ()


def test_a_line_of_a_file_that_the_capture_did_not_bring_is_read(partial, model):
    partial.view.select_place("model.py", 1)
    assert partial.document.selection.place == (str(model), 1)
    assert "make_model" in partial.document.sources[str(model)]
    partial.view.select_place("nothing.py", 3)
    assert partial.document.selection.place is None


def test_the_code_of_the_model_is_read_before_any_trace_and_anew_after_an_edit(opened, engine, model):
    opened.view.read_model_source()
    assert opened.document.sources == {str(model): "def make_model(): ...\n"}
    model.write_text("def make_model(): pass\n")
    opened.jobs.trace()
    assert opened.document.sources == {}
    opened.view.read_model_source()
    assert "pass" in opened.document.sources[str(model)]
