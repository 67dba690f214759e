"""``advise``: cards are listed, and one becomes a new run."""

import json

import pytest
from msgspec.structs import replace

from ace_studio.cli import run_command
from ace_studio.records.advice import Advice, AdviceOutcome, AdviceQuantity
from ace_studio.records.messages import JobFinished, RunRequest
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.results import Latency, Result, ResultStatus, RunStatus, TargetRun, encode_result
from ace_studio.session.kept.history import History
from tests.cli.fake_engine import FakeExecutor

LATENCY = Latency(p10=1.0, p50=1.0, p90=1.0, n=3)
RUN = TargetRun(
    target="eager", status=RunStatus.OK, precision="fp32", latency_ms=LATENCY, speedup=1.0, speedup_low=0.9,
    speedup_high=1.1, verified=True,
)  # fmt: skip
FAST = Advice(
    kind="precision-bf16", title="Try bf16", why="It was not measured.", estimate="about 2.0 times as fast",
    quantity=AdviceQuantity.LATENCY, estimated_gain=2.0, change={"plan": {"default": "bf16"}},
)  # fmt: skip
DATA = replace(FAST, kind="calibration-data", title="Give data", do_first="Write it.", quantity=AdviceQuantity.TRUST)
BREAK = replace(FAST, kind="mend-break", title="Mend the break", change={}, do_first="Run ace-studio fix.")
RECIPE = 'format = 1\n[model]\nsource = "net.py"\n'


@pytest.fixture
def finished(tmp_path, monkeypatch, answer_with):
    """A folder with a result of three cards, and the folder of its recipe; the next run has another result."""
    home = tmp_path / "home"
    home.mkdir()
    found = Result(
        status=ResultStatus.OK, fingerprint="f", environment={}, runs=(RUN,), chosen=0, advice=(FAST, DATA, BREAK),
        recipe=RECIPE, folder=str(home),
    )  # fmt: skip
    out = tmp_path / "out"
    out.mkdir()
    (out / "result.json").write_bytes(encode_result(found))
    History.open_default().add(found, recipe_toml=RECIPE, title="net.py", output=str(out), folder=str(home))
    outcome = AdviceOutcome(kind=FAST.kind, title=FAST.title, quantity=FAST.quantity, verdict="90% of the estimate")
    answer_with(JobFinished(job="run", result=replace(found, advice=(), advice_from=outcome), output=""))
    monkeypatch.setattr(History, "remember", lambda *words, **values: 1)
    return out, home


def test_cards_are_listed_with_why_gain_and_changes(finished, capsys):
    out, _ = finished
    assert run_command(["advise", str(out)]) == 0
    shown = capsys.readouterr().out
    for words in (
        "Advice 1: Try bf16",
        "It was not measured.",
        "about 2.0",
        '[plan] default = "bf16"',
        "first: Write it.",
    ):
        assert words in shown
    assert not FakeExecutor.requests
    assert run_command(["advise", str(out), "--json"]) == 0
    assert [card["kind"] for card in json.loads(capsys.readouterr().out)["advice"]] == [
        "precision-bf16",
        "calibration-data",
        "mend-break",
    ]


def test_a_card_becomes_a_run_of_the_changed_recipe_and_says_what_came_out(finished, tmp_path, capsys):
    out, home = finished
    assert run_command(["advise", str(out), "--apply", "1", "--out", str(tmp_path / "new"), "--trust"]) == 0
    (request,) = FakeExecutor.requests
    assert isinstance(request, RunRequest) and request.trust_all and request.folder == str(home)
    assert request.output == str(tmp_path / "new")
    assert request.recipe.plan.default is Precision.BF16
    assert (request.recipe.advice_from.kind, request.recipe.advice_from.before) == ("precision-bf16", 1.0)
    assert "90% of the estimate" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--apply", "4", "--out", "new"], "no card 4"),
        (["--apply", "2", "--out", "new"], "Write it."),
        (["--apply", "3", "--out", "new", "--done"], "changes nothing in the recipe"),
        (["--apply", "1"], "needs a folder"),
    ],
)
def test_what_cannot_be_applied_says_why(finished, capsys, words, said):
    out, _ = finished
    assert run_command(["advise", str(out), *words]) == 2
    assert said in capsys.readouterr().err and not FakeExecutor.requests


def test_what_was_done_by_hand_is_taken_at_its_word(finished, tmp_path):
    out, _ = finished
    assert run_command(["advise", str(out), "--apply", "2", "--done", "--out", str(tmp_path / "new")]) == 0
    assert FakeExecutor.requests[0].recipe.advice_from.kind == "calibration-data"


def test_a_recipe_whose_folder_is_gone_has_to_be_named(finished, tmp_path, capsys):
    out, home = finished
    home.rmdir()
    words = ["advise", str(out), "--apply", "1", "--out", str(tmp_path / "new")]
    assert run_command(words) == 2
    assert "--recipe" in capsys.readouterr().err
    other = tmp_path / "recipe.toml"
    other.write_text(RECIPE.replace("net", "other"))
    assert run_command([*words, "--recipe", str(other)]) == 0
    assert (
        FakeExecutor.requests[0].folder == str(tmp_path) and FakeExecutor.requests[0].recipe.model.source == "other.py"
    )
