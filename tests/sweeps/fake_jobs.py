"""Serves the jobs of the tests of sweeps without torch; ``[model] entry`` says how a job behaves.

Every job appends lines to the file that ``ACE_SWEEP_LOG`` names: when it starts, and when it ends.
"""

import ctypes
import os
import signal
import time
from pathlib import Path

from ace_studio.engine.progress import Reporter
from ace_studio.records import results
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.messages import AnyRequest, JobFinished, Phase, RunRequest
from ace_studio.records.recipes.recipe import Recipe

LOG_VARIABLE = "ACE_SWEEP_LOG"


def run(request: RunRequest, reporter: Reporter) -> None:
    """Answer as a run does: quickly, slowly, or not at all."""
    _log(request, "start")
    word = request.recipe.model.entry
    reporter.phase(Phase.MEASURE, word)
    if word == "crash":
        ctypes.string_at(0)
    if word == "kill_worker":
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)
    if word == "fail":
        raise AceError.of(ErrorCode.NOT_CAPTURED, "no graph", remedy="none")
    if word == "memory":
        (Path(request.folder) / "read").write_text((Path(request.folder) / "data.txt").read_text())
    if word.startswith("tenths_"):
        until = time.monotonic() + 0.1 * int(word.removeprefix("tenths_"))
        while time.monotonic() < until:
            reporter.check()
            time.sleep(0.02)
    result = result_of(request.recipe)
    (Path(request.output) / "artifacts").mkdir(parents=True, exist_ok=True)
    (Path(request.output) / "artifacts" / "model.pt2").write_bytes(b"artifact")
    (Path(request.output) / results.RESULT_NAME).write_bytes(results.encode_result(result))
    _log(request, "end")
    reporter.emit(JobFinished(job=request.job, result=result, output=request.output))


def result_of(recipe: Recipe) -> results.Result:
    """A result whose figures follow from the recipe: more threads take less time, int8 is smaller and less accurate."""
    is_small = recipe.plan.default != "fp32"
    base = results.Latency(p10=3.9, p50=4.0, p90=4.1, n=30)
    threads = recipe.measure.threads if isinstance(recipe.measure.threads, int) else 8
    own = results.Latency(p10=1.9 / threads, p50=2.0 / threads, p90=2.2 / threads, n=30)
    one = results.TargetRun(
        target="eager", status=results.RunStatus.OK, precision=str(recipe.plan.default), latency_ms=own,
        speedup=2.0 * threads, metric=0.89 if is_small else 0.9, size_bytes=1_000 if is_small else 4_000,
        artifact="artifacts/model.pt2", verified=True,
    )  # fmt: skip
    return results.Result(
        status=results.ResultStatus.OK, fingerprint="f" * 64, environment={},
        baseline=results.Baseline(latency_ms=base, metric=0.9), runs=(one,), chosen=0, goal_met=True,
    )  # fmt: skip


def _log(request: RunRequest, what: str) -> None:
    if path := os.environ.get(LOG_VARIABLE):
        with Path(path).open("a", encoding="utf-8") as log:
            log.write(f"{what} {request.recipe.measure.rounds} {os.getpid()} {os.getppid()}\n")


def _unused(request: AnyRequest, reporter: Reporter) -> None:
    raise AceError.of(ErrorCode.INTERNAL, f"no test asks for {type(request).__name__}")


inspect = doctor = trace = fix = sensitivity = preview_prune = catch_inputs = values = _unused
