"""What became of every op, in words, and which precisions feed which."""

from ace_studio.gui.ops.facts import Fate, fates_of, reports_by_op, running_precisions, transitions
from tests.gui.graph_tables import layered_table
from tests.gui.run_results import run_of

TABLE = layered_table(3)


def test_every_op_says_what_became_of_it():
    run = run_of(TABLE, kept=("linear_1",))
    fates = fates_of(TABLE, run)
    assert fates["linear_0"].words == "int8-static, as planned"
    assert fates["linear_1"].words == "fp32 instead of int8-static"
    assert (fates["act_0"].fate, fates["act_0"].words) == (Fate.FUSED, "fused into linear_0")
    assert (fates["stem_norm"].fate, fates["stem_norm"].into) == (Fate.FOLDED, "stem_linear")


def test_an_op_that_the_run_does_not_name_is_gone_and_inputs_have_no_fate():
    run = run_of(TABLE)
    short = type(run)(target="x", status=run.status, ops=run.ops[:-1])
    fates = fates_of(TABLE, short)
    assert fates["add_2"].fate is Fate.GONE
    assert "x" not in fates


def test_the_reports_of_a_run_are_sorted_by_op_once_however_many_ask():
    run = run_of(TABLE)
    found = reports_by_op(run)
    assert found["linear_0"].actual == "int8-static"
    assert fates_of(TABLE, run)._reports is found
    assert reports_by_op(run) is found


def test_a_run_without_reports_says_nothing():
    run = run_of(TABLE)
    assert fates_of(TABLE, type(run)(target="x", status=run.status)) == {}


def test_a_fused_op_runs_at_the_precision_of_its_host():
    run = run_of(TABLE, kept=("linear_1",))
    actual = running_precisions(fates_of(TABLE, run), run)
    assert actual["act_1"] == "fp32"
    assert actual["act_0"] == "int8-static"


def test_transitions_count_edges_between_ops_and_name_the_ops_at_their_ends():
    run = run_of(TABLE, kept=("linear_1",))
    found = {(one.source, one.target): one for one in transitions(TABLE, running_precisions(fates_of(TABLE, run), run))}
    into = found["int8-static", "fp32"]
    # add_0 -> linear_1; its activation went with it, and act_1 -> add_1 leads back.
    assert (into.edges, into.pairs) == (1, (("add_0", "linear_1"),))
    assert found["fp32", "int8-static"].pairs == (("act_1", "add_1"),)
    inner = sum(1 for source in TABLE.edge_source if source > 1) - 1
    assert sum(one.edges for one in found.values()) == inner
