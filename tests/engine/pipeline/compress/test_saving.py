"""Artifacts are proven in processes of their own, several at once; what one proof finds concerns its candidate only."""

import gc
import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from ace_studio.engine import export
from ace_studio.engine.examples.stored_calls import read_tensors
from ace_studio.engine.flow import BoundOp, BoundPlan, LoadedModel
from ace_studio.engine.pipeline.compress import saving
from ace_studio.engine.pipeline.compress.job import JobState
from ace_studio.engine.pipeline.compress.saving import export_all, report_ops
from ace_studio.engine.pipeline.compress.trying import try_plan
from ace_studio.engine.progress import Cancelled, Reporter
from ace_studio.engine.report import write_report
from ace_studio.engine.targets import TARGETS
from ace_studio.engine.targets.base import OpActual
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.graph import GraphTable, OpKind
from ace_studio.records.recipes.plan import Plan, Precision
from ace_studio.records.results import INPUTS_NAME, Baseline, OpSupport, Result, ResultStatus, RunStatus, SupportStatus
from ace_studio.records.safe_file import file_sha256
from tests.engine.captured import job_of

PLANS = (Plan(default=Precision.FP32), Plan(default=Precision.BF16))


@pytest.fixture
def job(tmp_path):
    """A job with two candidates of the eager target, built and not saved yet."""
    torch.manual_seed(0)
    loaded = LoadedModel(module=nn.Linear(4, 4).eval(), source=tmp_path, sha256="")
    with torch.no_grad():
        made = job_of(loaded, torch.randn(2, 4), output=tmp_path)
        for plan in PLANS:
            try_plan(made, TARGETS["eager"], plan)
    assert len(made.state.alive) == 2
    return made


def test_two_artifacts_are_proven_at_the_same_time(job, monkeypatch):
    together = threading.Barrier(2, timeout=30)  # breaks if one proof waits for the other
    monkeypatch.setattr(saving, "_verifiers_at_once", lambda _: 2)
    monkeypatch.setattr(export, "verify_artifact", lambda *_, **__: together.wait() + 7)
    export_all(job)
    assert [one.run.verified for one in job.state.candidates] == [True, True]
    assert sorted(one.run.peak_memory_bytes for one in job.state.candidates) == [7, 8]
    assert all(one.run.ops for one in job.state.candidates)


def test_an_artifact_that_needs_options_is_named_and_no_other(job, monkeypatch):
    monkeypatch.setattr(export, "verify_artifact", lambda *_, **__: 1)
    needed = lambda path, *_: {"HINT": "f32"} if "bf16" in str(path) else {}  # noqa: E731 - bound to no name
    monkeypatch.setattr(TARGETS["eager"], "needed_options", needed)
    export_all(job)
    (warning,) = [one for one in job.reporter.warnings if one.code == "artifact-options"]
    own = job.state.candidates[1].run.artifact
    assert (warning.where, warning.options) == (own, {"HINT": "f32"})
    assert warning.what.startswith(f"{own} computes as measured only if")


def test_the_runtimes_time_their_ops_before_other_processes_compute(job, monkeypatch):
    order = []
    monkeypatch.setattr(export, "verify_artifact", lambda *_, **__: order.append("proof"))
    for one in job.state.candidates:
        read_back = one.lowered.read_back
        one._actual = None
        monkeypatch.setattr(one.lowered, "read_back", lambda read=read_back: order.append("ops") or read())
    export_all(job)
    assert order == ["ops", "ops", "proof", "proof"]


def test_an_artifact_that_does_not_hold_up_is_the_failure_of_its_candidate_alone(job, monkeypatch):
    def prove(target, path, *_, **__):
        if "bf16" in str(path):
            raise AceError.of(ErrorCode.WRONG_CAPTURE, "It gives other numbers")
        return 1

    monkeypatch.setattr(export, "verify_artifact", prove)
    export_all(job)
    right, wrong = job.state.candidates
    assert (right.run.status, right.run.verified) == (RunStatus.OK, True)
    assert (wrong.run.status, wrong.run.verified) == (RunStatus.FAILED, False)
    assert wrong.run.error.what == "It gives other numbers"


def saved_by_every_quick_target(output, monkeypatch):
    """Save a candidate of each target that builds in tenths of a second into ``output``, with a report."""
    monkeypatch.setattr(export, "verify_artifact", lambda *_, **__: 1)
    torch.manual_seed(0)
    loaded = LoadedModel(module=nn.Linear(4, 4).eval(), source=output, sha256="")
    names = [name for name in ("eager", "onnxruntime", "openvino", "litert", "executorch") if name in TARGETS]
    with torch.no_grad():
        job = job_of(loaded, torch.randn(2, 4), output=output)
        for name in names:
            if TARGETS[name].available().ok:
                try_plan(job, TARGETS[name], PLANS[0])
        export_all(job)
    runs = tuple(one.run for one in job.state.candidates)
    result = Result(status=ResultStatus.OK, fingerprint="f", environment={}, runs=runs)
    write_report(result, job.captured.table, output)
    return runs


def test_nothing_that_a_run_writes_goes_through_a_link_that_somebody_planted(tmp_path, monkeypatch):
    """Every file of a run is planted as a link to a canary, or to a new file in somebody's home, before the next."""
    first, out, home = (tmp_path / name for name in ("first", "out", "home"))
    for folder in (first, out, home):
        folder.mkdir()
    saved_by_every_quick_target(first, monkeypatch)
    names = [path.relative_to(first) for path in sorted(first.rglob("*")) if path.is_file()]
    assert {"result.json", "report.html", "model.onnx", "model.pt2"} <= {name.name for name in names}
    for number, name in enumerate(names):
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).symlink_to(home / str(number))
        if number % 2:
            (home / str(number)).write_text("mine")
    before = {path.name: path.read_text() for path in home.iterdir()}
    runs = saved_by_every_quick_target(out, monkeypatch)
    assert {path.name: path.read_text() for path in home.iterdir()} == before
    assert [run.status for run in runs] == [RunStatus.OK] * len(runs)
    assert not [name for name in names if (out / name).is_symlink() or not (out / name).is_file()]


@pytest.mark.parametrize("planted", ["artifacts", "artifacts/00-eager-fp32"])
def test_no_artifact_is_written_into_a_folder_that_a_link_leads_to(job, tmp_path, monkeypatch, planted):
    monkeypatch.setattr(export, "verify_artifact", lambda *_, **__: 1)
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / planted).parent.mkdir(exist_ok=True)
    (tmp_path / planted).symlink_to(home)
    export_all(job)
    first = job.state.candidates[0].run
    assert (first.status, first.error.code) == (RunStatus.FAILED, ErrorCode.USAGE)
    assert "a link or a file is on the way" in first.error.why
    assert not list(home.iterdir())


def test_what_was_built_takes_its_scratch_folder_with_it(job, monkeypatch):
    monkeypatch.setattr(export, "verify_artifact", lambda *_, **__: 1)
    candidate = job.state.candidates[0]
    scratch = candidate.lowered._job.folder
    assert scratch.is_dir()
    assert not scratch.is_relative_to(job.output)
    job.state.candidates.clear()
    job.state.proofs.clear()
    del candidate
    gc.collect()
    assert not scratch.exists()


def test_a_stop_ends_the_wait_for_proofs(job, monkeypatch):
    asked = threading.Event()
    job = replace(job, reporter=Reporter(is_cancelled=asked.is_set))

    def prove(*_, reporter, **__):
        asked.set()
        while True:
            reporter.check()

    monkeypatch.setattr(export, "verify_artifact", prove)
    with pytest.raises(Cancelled):
        export_all(job)


@pytest.mark.parametrize(
    ("cores", "threads", "free_gb", "weights_gb", "expected"),
    [(2, 1, 64, 0.1, 2), (8, 4, 64, 0.1, 2), (8, 1, 5, 0.5, 2), (8, 1, 1, 2.0, 1), (1, 1, 64, 0.1, 1)],
)
def test_as_many_at_once_as_there_are_cores_and_memory(monkeypatch, cores, threads, free_gb, weights_gb, expected):
    monkeypatch.setattr(saving.os, "cpu_count", lambda: cores)
    monkeypatch.setattr(saving.psutil, "virtual_memory", lambda: SimpleNamespace(available=int(free_gb * 1e9)))
    state = JobState(baseline=Baseline(size_bytes=int(weights_gb * 1e9)))
    job = SimpleNamespace(threads=threads, state=state)
    assert saving._verifiers_at_once(job) == expected


TABLE = GraphTable(
    op_id=("x", "linear"), kind=(OpKind.INPUT, OpKind.OP), op=("", "aten.linear.default"), module=("", "head"),
    shape=("1x4", "1x2"), dtype=("float32",) * 2, device=("cpu",) * 2, file=(-1,) * 2, line=(0,) * 2, flops=(0, 16),
    weight_bytes=(0, 32), output_bytes=(0, 8), edge_source=(0,), edge_target=(1,),
)  # fmt: skip
INT8 = Plan(default=Precision.INT8_STATIC)


def report(actual=(), *, assigned=Precision.INT8_STATIC, reason="", support=None):
    op = BoundOp(requested=Precision.INT8_STATIC, assigned=assigned, reason=reason, scheme=INT8.scheme)
    (found,) = report_ops(TABLE, BoundPlan(INT8, {"linear": op}), actual, support=support or {})
    return found


def ran(actual="int8-static", reason="it ran"):
    return OpActual(op_id="linear", actual=actual, device="cpu", reason=reason)


def test_only_ops_are_reported_with_the_plan_the_runtime_and_its_reason():
    found = report([ran()])
    assert (found.id, found.module, found.planned, found.actual) == ("linear", "head", "int8-static", "int8-static")
    assert found.reason == "it ran"


def test_an_op_that_the_runtime_does_not_report_is_unknown():
    found = report()
    assert found.actual == "unknown"
    assert found.reason == "the runtime does not report this op"


@pytest.mark.parametrize("words", ["it ran", "no kernel; it ran"])
def test_a_refused_precision_is_said_once_also_where_the_runtime_repeats_it(words):
    found = report([ran("fp32", words)], assigned=Precision.FP32, reason="no kernel")
    assert found.planned == "int8-static"
    assert found.reason == "no kernel; it ran"


def test_an_op_that_calls_pytorch_says_so():
    support = {"linear": OpSupport(id="linear", op="linear", status=SupportStatus.FALLBACK, instead="calls ATen")}
    assert report([ran()], support=support).reason == "it ran; calls ATen"


def test_the_measured_call_and_the_hash_of_each_artifact_are_kept_for_other_devices(job, monkeypatch):
    monkeypatch.setattr(export, "verify_artifact", lambda *_, **__: 1)
    export_all(job)
    ((stored,),) = read_tensors(job.output / INPUTS_NAME, 1)
    assert torch.equal(stored, job.captured.examples[0].tensors()[0])
    for one in job.state.candidates:
        assert one.run.artifact_sha256 == file_sha256(job.output / one.run.artifact)
