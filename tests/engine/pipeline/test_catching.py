"""Running a user's script to catch inputs: trust first, everything kept that can be, and a recipe that uses it."""

import sys
from pathlib import Path

import pytest
import torch

from ace_studio.engine import pipeline
from ace_studio.engine.progress import Cancelled, Reporter
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.messages import CatchRequest, InputsCaught, ModelCaptured, TraceRequest
from ace_studio.records.recipes import recipe as recipes

MODEL = """
import dataclasses
import torch

@dataclasses.dataclass
class Batch:
    ids: torch.Tensor
    mask: torch.Tensor

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(20, 4)
    def forward(self, batch, *, flag=False):
        return (self.embed(batch.ids) * batch.mask.unsqueeze(-1)).sum(1)

def make_model():
    return Net()
"""
SCRIPT = """
import sys
import torch
from model import Batch, make_model

if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    net = make_model().float()
    for step in range(int(sys.argv[1])):
        n, t = 1 + step % 2, 5 + step % 3
        net(Batch(torch.arange(n * t).reshape(n, t), torch.ones(n, t, dtype=torch.float32)), flag=True)
        if sys.argv[2:] == ["fail"] and step == 2:
            raise OSError("disk gone")
    sys.exit(0)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    (tmp_path / "model.py").write_text(MODEL, encoding="utf-8")
    path = tmp_path / "train.py"
    path.write_text(SCRIPT, encoding="utf-8")
    return path


def catch(script: Path, *arguments: str, is_cancelled=lambda: False, **options) -> InputsCaught:
    events: list[object] = []
    request = CatchRequest(
        job="j",
        script=str(script),
        output=str(script.parent / "caught"),
        arguments=arguments,
        **({"trust_all": True} | options),
    )
    pipeline.catch_inputs(request, Reporter(events.append, job="j", is_cancelled=is_cancelled))
    (found,) = [one for one in events if isinstance(one, InputsCaught)]
    return found


def test_nothing_runs_before_the_script_is_trusted(script):
    script.write_text("raise SystemExit('ran')", encoding="utf-8")
    with pytest.raises(AceError) as caught:
        catch(script, trust_all=False)
    problem = caught.value.problem
    assert problem.code is ErrorCode.UNTRUSTED
    assert problem.exit_code == 5
    assert problem.details.startswith("sha256:")
    sha256 = problem.details.removeprefix("sha256:")
    with pytest.raises(AceError, match="ran"):
        catch(script, trust_all=False, trusted_sha256=(sha256,))


def test_what_was_caught_traces_the_model_without_running_the_script_again(script):
    found = catch(script, "20", calls=6)
    assert (found.module, found.seen, found.kept, found.problem) == ("Net", 20, 6, None)
    script.unlink()
    recipe = recipes.Recipe(
        model=recipes.ModelChoice(source="model.py", entry="make_model"),
        inputs=recipes.InputsChoice(caught="caught"),
        calibration=recipes.CalibrationChoice(caught="caught/inputs.json"),
        capture=recipes.CaptureChoice(rungs=("export",)),
        targets=recipes.TargetsChoice(names=("eager",)),
    )
    events: list[object] = []
    request = TraceRequest(job="t", recipe=recipe, folder=str(script.parent), trust_all=True)
    pipeline.trace(request, Reporter(events.append, job="t"))
    (captured,) = [one for one in events if isinstance(one, ModelCaptured)]
    assert [one.name for one in captured.capture.inputs] == ["batch.ids", "batch.mask"]
    assert [dim.verdict for dim in captured.capture.inputs[0].dims] == ["dynamic", "dynamic"]


def test_a_script_that_fails_is_told_with_its_line_and_what_was_caught_stays(script):
    found = catch(script, "9", "fail")
    assert found.problem is not None
    assert "disk gone" in found.problem.what
    assert found.problem.where.endswith("train.py:14")
    assert found.kept == 3
    assert Path(found.path).is_file()


def test_a_script_that_is_cancelled_leaves_what_was_caught(script):
    checks = iter(range(100))
    with pytest.raises(Cancelled):
        catch(script, "1000", is_cancelled=lambda: next(checks) > 4)
    assert (script.parent / "caught" / "inputs.json").is_file()


def test_a_script_that_calls_no_such_module_says_what_it_called(script):
    with pytest.raises(AceError) as caught:
        catch(script, "2", module="Decoder")
    assert caught.value.problem.code is ErrorCode.NO_DATA
    assert "embed (Embedding)" in caught.value.problem.why


def test_rows_for_the_shape_table_name_the_tensors_of_the_file(script):
    script.write_text(
        "import torch\nnet = torch.nn.Linear(4, 2)\nnet(torch.ones(1, 4))\nnet(input=torch.ones(3, 4))\n",
        encoding="utf-8",
    )
    rows = catch(script).rows
    assert [row["input"].shape for row in rows] == [(1, 4), (3, 4)]
    assert rows[0]["input"].values.endswith("inputs.safetensors:0.0")
    assert rows[1]["input"].values.endswith("inputs.safetensors:1.input")


def test_rows_are_left_out_where_a_call_holds_more_than_tensors(script):
    assert catch(script, "3").rows == ()


def test_the_process_is_afterwards_as_it_was(script):
    main, arguments = sys.modules["__main__"], list(sys.argv)
    catch(script, "2")
    assert torch.get_default_dtype() is torch.float32
    assert sys.modules["__main__"] is main
    assert sys.argv == arguments
    assert str(script.parent) not in sys.path[:1]


@pytest.mark.parametrize("name", ["missing.py", "model.txt"])
def test_what_is_no_script_is_told(script, name):
    (script.parent / "model.txt").write_text("", encoding="utf-8")
    with pytest.raises(AceError) as caught:
        catch(script.parent / name)
    assert caught.value.problem.code is ErrorCode.NOT_FOUND
