"""Whole journeys over the command line: a real engine process, real targets, real files, the contract's exit codes."""

import json
import subprocess
import sys
import textwrap

import pytest

from ace_studio.cli import run_command

ROOT_MODEL = '''
"""A small regressor on exact data, and the ways in which a model file can be broken."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.body = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))

    def forward(self, x):
        return self.body(x)


def make_model():
    return Net()


def _points(n, seed):
    return torch.randn(n, 8, generator=torch.Generator().manual_seed(seed))


def tracing_inputs():
    return [(_points(2, 1),), (_points(5, 2),)]


def calibration_inputs():
    return [(_points(16, seed),) for seed in range(4)]


def evaluate(predict):
    x = _points(256, 99)
    labels = Net()(x).argmax(1)
    return float((predict(x).argmax(1) == labels).float().mean())


class Raises(nn.Module):
    def forward(self, x):
        raise KeyError("no such head")  # raises


def make_raising():
    return Raises()


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x):
        if x.sum() > 0:  # branches
            return self.linear(x)
        return torch.zeros(8)


def make_branching():
    return Branches()


def wrong_shapes():
    return [(torch.ones(2, 7),)]
'''

BRANCH_LINE = ROOT_MODEL.splitlines().index("        if x.sum() > 0:  # branches") + 1


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "model.py").write_text(ROOT_MODEL, encoding="utf-8")
    return tmp_path


def write_recipe(folder, **sections):
    tables = {
        "model": {"source": "model.py", "entry": "make_model"},
        "inputs": {"tracing": "tracing_inputs"},
    } | sections
    lines = ["format = 1"]
    for name, table in tables.items():
        lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items())]
    path = folder / "recipe.toml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def ace(forked_engines):
    """Gives a command in a process of its own; the answer is (exit code, JSON, stderr)."""

    def give(*words, cwd):
        done = forked_engines.run((*words, "--json"), cwd)
        assert "Traceback" not in done.stderr
        return done.returncode, json.loads(done.stdout), done.stderr

    return give


@pytest.fixture
def ask(one_engine, monkeypatch, capsys):
    """As `ace`, in this process and with one engine for all tests."""

    def give(*words, cwd):
        monkeypatch.chdir(cwd)
        code = run_command([*map(str, words), "--json"])
        printed = capsys.readouterr()
        return code, json.loads(printed.out), printed.err

    return give


@pytest.fixture
def run(ace, folder):
    """Runs a recipe of these sections."""

    def give(**sections):
        return ace("run", write_recipe(folder, **sections), "--out", folder / "out", "--trust", cwd=folder)

    return give


QUICK = {"measure": {"threads": 1, "rounds": 5}}
INT8 = {
    "calibration": {"inputs": "calibration_inputs"},
    "evaluate": {"function": "evaluate"},
    "plan": {"default": "int8-static"},
}


@pytest.mark.slow
def test_an_int8_onnx_file_gives_the_reported_metric_in_plain_onnxruntime(folder, run):
    code, result, _ = run(**INT8, **QUICK, goal={"max_drop": 0.1}, targets={"names": ["onnxruntime"]})
    assert (code, result["status"], result["goal_met"]) == (0, "ok", True)
    chosen = result["runs"][result["chosen"]]
    assert chosen["verified"]
    assert chosen["size_bytes"] < result["baseline"]["size_bytes"] * 4
    assert any(op["actual"] == "int8-static" for op in chosen["ops"])
    script = textwrap.dedent(
        """
        import sys, torch, onnxruntime, model
        session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
        name = session.get_inputs()[0].name
        print(model.evaluate(lambda x: torch.from_numpy(session.run(None, {name: x.numpy()})[0])))
        """
    )
    path = folder / "out" / chosen["artifact"]
    plain = subprocess.run(
        [sys.executable, "-c", script, str(path)], cwd=folder, capture_output=True, text=True, check=True, timeout=120
    )
    assert float(plain.stdout) == pytest.approx(chosen["metric"], abs=1e-9)


@pytest.mark.slow
def test_auto_chooses_the_fastest_run_that_meets_the_goal(folder, run):
    code, result, _ = run(**INT8, **QUICK, goal={"max_drop": 0.1}, targets={"names": ["onnxruntime", "openvino"]})
    assert code == 0
    meeting = [one for one in result["runs"] if one["status"] == "ok" and one["metric_drop"] <= 0.1 and one["verified"]]
    fastest = min(meeting, key=lambda one: one["latency_ms"]["p50"])
    assert result["runs"][result["chosen"]] == fastest
    assert (folder / "out" / "result.json").is_file()
    assert json.loads((folder / "out" / "result.json").read_text()) == result


@pytest.mark.slow
def test_an_impossible_goal_ends_with_code_4_and_the_best_found(run):
    code, result, err = run(**INT8, **QUICK, goal={"max_size_mb": 1e-6}, targets={"names": ["onnxruntime"]})
    assert (code, result["status"], result["goal_met"]) == (4, "goal-not-met", False)
    assert result["chosen"] is not None
    assert "at most 1e-06 MB is allowed" in result["error"]["why"]
    assert "remedy" in err


def test_without_trust_nothing_runs_and_the_code_is_5(folder, ace):
    (folder / "model.py").write_text("raise SystemExit('ran')\n" + ROOT_MODEL, encoding="utf-8")
    code, answer, err = ace("run", write_recipe(folder), "--out", folder / "out", cwd=folder)
    assert code == 5
    assert answer["error"]["code"] == "untrusted"
    assert "--trust" in err


@pytest.mark.parametrize(
    ("sections", "code", "words"),
    [
        ({"model": {"source": "model.py", "entry": "make_modle"}}, 2, "make_model"),
        ({"model": {"source": "model.py", "entry": "make_raising"}}, 3, "KeyError"),
        (
            {"model": {"source": "model.py", "entry": "make_branching"}, "capture": {"rungs": ["export", "dynamo"]}},
            3,
            f"model.py:{BRANCH_LINE}",
        ),
        ({"inputs": {"tracing": "wrong_shapes"}}, 3, "shape"),
        ({"goal": {"max_drop": 0.01}}, 2, "evaluate"),
    ],
    ids=["missing entry", "exception in forward", "data-dependent branch", "wrong shapes", "goal without a metric"],
)
def test_bad_input_is_a_message_with_cause_and_remedy(folder, ask, sections, code, words):
    got, answer, err = ask("run", write_recipe(folder, **sections), "--out", folder / "out", "--trust", cwd=folder)
    assert got == code
    assert answer["error"]["what"]
    assert answer["error"]["remedy"]
    assert words in err


def test_a_text_file_named_pt_is_called_what_it_is(folder, ask):
    (folder / "weights.pt").write_text("these are not weights\n", encoding="utf-8")
    sections = {"model": {"source": "model.py", "entry": "make_model", "weights": "weights.pt"}}
    code, answer, err = ask("run", write_recipe(folder, **sections), "--out", folder / "out", "--trust", cwd=folder)
    assert code == 2
    assert "text" in answer["error"]["what"] + answer["error"]["why"]
    assert "weights_only" not in err


def test_trace_reports_the_verdict_of_every_dimension(folder, ask):
    code, answer, _ = ask("trace", write_recipe(folder), "--trust", cwd=folder)
    assert code == 0
    (found,) = answer["capture"]["inputs"]
    assert [dim["verdict"] for dim in found["dims"]] == ["dynamic", "static"]
    assert {2, 5} < set(found["dims"][0]["verified_sizes"])


def test_user_code_may_name_files_relative_to_the_recipe(folder, ask, tmp_path_factory):
    (folder / "width.txt").write_text("8", encoding="utf-8")
    reading = '\n\ndef make_reading():\n    return nn.Linear(int(open("width.txt").read()), 2)\n'
    (folder / "model.py").write_text(ROOT_MODEL + reading, encoding="utf-8")
    recipe = write_recipe(folder, model={"source": "model.py", "entry": "make_reading"})
    code, answer, err = ask("trace", recipe, "--trust", cwd=tmp_path_factory.mktemp("elsewhere"))
    assert code == 0, err
    assert answer["capture"]["ops"] == 1


@pytest.mark.slow
def test_auto_leaves_out_targets_that_cannot_do_the_plan_and_a_named_one_says_why(run, monkeypatch):
    monkeypatch.setenv("PATH", "")  # without a compiler there is no Inductor, which would take the longest to build
    plan = {"plan": {"default": "int8-dynamic"}}
    _, named, _ = run(**plan, **QUICK, targets={"names": ["eager", "onnxruntime"]})
    assert [one["status"] for one in named["runs"]] == ["unavailable", "ok"]
    assert "int8" in named["runs"][0]["error"]["why"]
    _, automatic, _ = run(**plan, **QUICK, targets={"names": ["auto"]})
    assert "eager" not in [one["target"] for one in automatic["runs"]]
    assert "onnxruntime" in [one["target"] for one in automatic["runs"] if one["status"] == "ok"]
