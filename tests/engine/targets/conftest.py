"""Captured tiny models, and candidates built from them, each made once per session."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
import torch

from ace_studio.engine.flow import BoundPlan, CapturedModel
from ace_studio.engine.plan import bind_plan
from ace_studio.engine.progress import Reporter
from ace_studio.engine.targets import TARGETS
from ace_studio.engine.targets.base import Lowered, LoweringJob
from ace_studio.records.recipes.plan import Plan, Precision
from tests import tiny_models
from tests.engine.captured import captured_of

MODELS: dict[str, Callable[[], tiny_models.TinyModel]] = {
    "conv_net": tiny_models.conv_net,
    "mlp": tiny_models.mlp,
    "text_model": tiny_models.text_model,
}
"""Convolutions with batch norms; linear layers; keyword arguments, a nested dictionary and integer inputs."""


@cache
def captured_model(name: str) -> CapturedModel:
    """One of `MODELS`, captured on the CPU."""
    tiny = MODELS[name]()
    return captured_of(tiny.module, *tiny.examples)


def bound(target: str, captured: CapturedModel, precision: Precision) -> BoundPlan:
    """Everything at one precision, as far as the target can."""
    return bind_plan(Plan(default=precision), captured.table, op_problem=TARGETS[target].op_problem)


def make_job(captured: CapturedModel, plan: BoundPlan, folder: Path) -> LoweringJob:
    """A job on one thread, calibrated with the captured examples."""
    return LoweringJob(
        captured=captured,
        plan=plan,
        calibration=lambda: captured.examples,
        threads=1,
        device=torch.device("cpu"),
        folder=folder,
    )


OPEN_ONE_AFTER_ANOTHER = """
import sys
sys.path.insert(0, sys.argv[1])
from ace_studio.engine.verify_child import verify
for line in sys.stdin:
    verify(line.strip())
    print("done", flush=True)
"""


@pytest.fixture(scope="module")
def opener(root: Path) -> Iterator[Callable[[Path, Reporter], None]]:
    """Carries orders to verify out in one process, which has built nothing: to start one for each takes seconds."""
    command = [sys.executable, "-c", OPEN_ONE_AFTER_ANOTHER, str(root)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None

        def carry_out(folder: Path, reporter: Reporter) -> None:
            del reporter
            (folder / "log.txt").touch()
            process.stdin.write(f"{folder}\n")
            process.stdin.flush()
            for line in process.stdout:
                if line == "done\n":
                    return

        yield carry_out
        process.stdin.close()


@pytest.fixture(scope="session")
def lower(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Precision, str], Lowered]:
    """Build a candidate, or give the one that was built before."""

    @cache
    def build(target: str, precision: Precision, model: str) -> Lowered:
        captured = captured_model(model)
        job = make_job(captured, bound(target, captured, precision), tmp_path_factory.mktemp(target))
        return TARGETS[target].lower(job)

    return build
