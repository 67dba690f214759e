"""A target that one call registers goes through a whole job and the window, in both processes."""

import pytest

from ace_studio.gui.shell.app import Studio
from ace_studio.records.results import decode_result
from ace_studio.records.targets import ROWS_VARIABLE, TARGET_ROWS, register
from ace_studio.session.kept.folders import UserFolders
from tests.flows.toy_target import ROW

pytestmark = pytest.mark.slow

ENGINE_MS = 90_000

MODEL = """
import torch


def make_model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4)).eval()


def tracing_inputs():
    return [(torch.randn(rows, 8),) for rows in (2, 5)]
"""
RECIPE = """
format = 1
[model]
source = "model.py"
entry = "make_model"
[inputs]
tracing = "tracing_inputs"
[measure]
rounds = 5
[targets]
names = ["toy"]
"""


@pytest.fixture
def toy(monkeypatch):
    """The toy target, for as long as the test runs."""
    monkeypatch.setenv(ROWS_VARIABLE, "[]")
    register(ROW)
    yield ROW
    del TARGET_ROWS[ROW.name]


@pytest.fixture
def folder(tmp_path):
    """A model and a recipe that builds it for the toy."""
    (tmp_path / "model.py").write_text(MODEL, encoding="utf-8")
    (tmp_path / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    return tmp_path


def test_a_recipe_that_names_it_gives_a_verified_result(toy, folder, forked_engines):
    done = forked_engines.run(["run", "recipe.toml", "--out", "out", "--trust"], folder)
    assert done.returncode == 0, done.stderr
    result = decode_result((folder / "out" / "result.json").read_bytes())
    (run,) = result.runs
    assert (run.target, run.status, run.verified) == ("toy", "ok", True)
    assert run.profile is not None and run.profile.source == toy.times_source
    assert run.sqnr_db is not None and 80 < run.sqnr_db < 130  # it rounds, and no more than it says
    assert (folder / "out" / run.artifact).is_file()


@pytest.mark.usefixtures("toy", "forked_engines")
def test_the_window_lists_it_among_the_targets_and_in_the_results(qtbot, qapp, folder):
    studio = Studio(qapp, UserFolders.inside(folder / "user"))
    qtbot.addWidget(studio.window)
    studio.window.show()
    session = studio.session
    qtbot.waitUntil(lambda: session.document.environment is not None, timeout=ENGINE_MS)
    studio.window.commands.open_path(str(folder / "recipe.toml"))
    qtbot.waitUntil(lambda: studio.session.document.needs_trust, timeout=ENGINE_MS)
    session.trust.trust_file()
    studio.window.commands.show_panel("plan")
    box = studio.window.workbench.panel("plan").targets.boxes["toy"]
    qtbot.waitUntil(box.isChecked, timeout=5000)
    assert box.text().startswith("Toy runtime")
    qtbot.waitUntil(studio.window.actions_.by_id["run"].isEnabled, timeout=5000)
    studio.window.actions_.by_id["run"].trigger()
    qtbot.waitUntil(lambda: session.document.result is not None, timeout=ENGINE_MS)
    studio.window.commands.show_panel("results")
    qtbot.wait(200)
    model = studio.window.workbench.panel("results").model
    assert "toy" in [model.index(row, 1).data() for row in range(model.rowCount())]
    studio.window.leave()
    studio.close()
