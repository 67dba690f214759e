"""The graphs of past runs, one file per fingerprint."""

from ace_studio.session.kept import graphs
from ace_studio.session.kept.graphs import KeptGraph, KeptGraphs
from tests.gui.graph_tables import layered_table


def test_a_graph_comes_back_as_it_was_and_is_written_once(tmp_path):
    kept = KeptGraphs(tmp_path / "graphs")
    one = KeptGraph(layered_table(2), {"m.py": "x = 1"})
    kept.keep("f", one).join()
    assert kept.find("f") == one
    assert kept.keep("f", one) is None
    assert kept.find("other") is None


def test_the_oldest_graphs_go(tmp_path, monkeypatch):
    monkeypatch.setattr(graphs, "KEPT", 2)
    kept = KeptGraphs(tmp_path)
    for name in "abc":
        kept.keep(name, KeptGraph(layered_table(1), {})).join()
    assert len(list(tmp_path.iterdir())) == 2


def test_a_damaged_file_is_no_graph(tmp_path):
    (tmp_path / "f.msgpack.z").write_bytes(b"no")
    assert KeptGraphs(tmp_path).find("f") is None
