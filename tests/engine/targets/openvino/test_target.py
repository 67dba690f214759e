"""OpenVINO: precisions, what its runtime model says, its artifact, and that nothing is sent anywhere."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxscript")
pytest.importorskip("openvino")
pytest.importorskip("nncf")

import msgspec
import torch
from torch import nn

from ace_studio.engine.flow import tensor_leaves
from ace_studio.engine.progress import Cancelled, Reporter
from ace_studio.engine.quantize.observers import RangeChoice
from ace_studio.engine.quantize.simulate import NNCF, PAIRS
from ace_studio.engine.subgraphs import run_pieces
from ace_studio.engine.targets import TARGETS
from ace_studio.engine.targets.openvino import target as openvino
from ace_studio.engine.targets.openvino.library import import_openvino
from ace_studio.engine.targets.openvino.target import base_options, later_times_ms
from ace_studio.jobs.devices import measure_there
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.messages import Progress
from ace_studio.records.recipes.plan import ActivationGrid, Plan, PlanRule, Precision, WeightGranularity
from ace_studio.records.recipes.recipe import Observer
from tests.engine.targets.onnx_cases import actual_of, cancelled_at, capture, captured_easy, job_for, sqnr_db
from tests.engine.targets.test_onnx_targets import LEAST_SQNR_DB
from tests.tiny_models import TinyModel, lstm_cell

torch.set_num_threads(1)
TARGET = TARGETS["openvino"]


class SummedDirections(nn.Module):
    """A recognizer of text lines: convolution, both directions of a GRU summed, layer norm, residual."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Conv2d(1, 8, (6, 3), padding=(0, 1))
        self.recurrent = nn.GRU(8, 8, bidirectional=True)
        self.norm = nn.LayerNorm(8)

    def forward(self, lines: torch.Tensor) -> torch.Tensor:
        steps, _ = self.recurrent(self.features(lines).relu().squeeze(2).permute(2, 0, 1))
        both = steps.view(steps.shape[0], steps.shape[1], 2, -1).sum(2)
        return self.norm(both) + both


def test_a_layer_norm_beside_8_bit_ops_stays_float():
    torch.manual_seed(0)
    captured = capture(TinyModel(SummedDirections().eval(), [(torch.randn(1, 1, 6, 12),) for _ in range(3)]))
    lowered = TARGET.lower(job_for(TARGET, captured, Precision.INT8_STATIC))
    want, got = (captured.example.call(one) for one in (captured.module, lowered))
    assert got[0].shape == want[0].shape  # OpenVINO 2026.4 gave [12, 12, 8] where NNCF quantized the norm's input
    assert sqnr_db(want, got) > 30
    assert "int8-static" in actual_of(lowered).values()


@pytest.mark.parametrize("precision", [one for one in LEAST_SQNR_DB if not TARGET.precision_problem(one)])
def test_a_product_runs_at_the_planned_precision(precision, monkeypatch):
    monkeypatch.setattr(openvino, "quantizes_activations", lambda: True)
    wide = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64)).eval()
    generator = torch.Generator().manual_seed(0)
    examples = [(torch.randn(n, 64, generator=generator),) for n in (2, 5)]
    lowered = TARGET.lower(job_for(TARGET, capture(TinyModel(wide, examples)), precision))
    actual = actual_of(lowered)
    assert (actual["linear"], actual["linear_1"], actual["relu"]) == (precision, precision, "fused")


def test_fp32_is_asked_for_by_name_because_the_default_is_lower():
    assert base_options(threads=2)["INFERENCE_PRECISION_HINT"] == "f32"
    assert base_options(threads=2)["INFERENCE_NUM_THREADS"] == "2"


def test_the_times_of_ops_leave_out_the_first_call_in_which_the_runtime_makes_its_kernels():
    means_us = {"first": {"a": 900, "b": 5}, "all": {"a": 300, "b": 5, "c": 8}}
    assert later_times_ms(means_us["all"], means_us["first"], calls=3) == {"a": 0.1, "b": 0.005, "c": 0.008}
    assert later_times_ms({"a": 1}, {"a": 9}, calls=3) == {"a": 0.0}  # means are whole microseconds


def test_a_state_that_calibration_never_saw_move_is_left_in_float_with_the_reason():
    model = lstm_cell()
    zero = [(x, torch.zeros_like(state)) for x, state in model.examples]
    job = job_for(TARGET, capture(TinyModel(model.module, zero)), Precision.INT8_STATIC)
    lowered = TARGET.lower(job)
    assert "calibration-constant" in [warning.code for warning in job.reporter.warnings]
    x, state = model.examples[-1]
    assert sqnr_db(model.module(x, state), lowered(x, state)) > 15


def test_a_precision_that_the_processor_lacks_is_refused_with_what_it_would_take(monkeypatch):
    monkeypatch.setattr(openvino, "cpu_capabilities", lambda: frozenset({"FP32", "INT8"}))
    assert "avx512_bf16" in TARGET.precision_problem(Precision.BF16)
    assert TARGET.op_problem("aten.linear.default", Precision.BF16)
    assert not TARGET.precision_problem(Precision.INT8_STATIC)


def test_another_device_is_refused():
    assert not TARGET.device_problem(torch.device("cpu"))
    assert "runs on the CPU only" in TARGET.device_problem(torch.device("cuda"))


def test_a_broken_artifact_is_a_bad_file(tmp_path):
    path = tmp_path / "model.xml"
    path.write_text("not an IR", encoding="utf-8")
    with pytest.raises(AceError) as caught:
        TARGET.load(path, threads=1)
    assert caught.value.problem.code is ErrorCode.BAD_FILE


def test_the_artifact_keeps_fp32_weights_and_runs_as_planned_in_a_process_that_has_never_seen_the_model(tmp_path):
    captured = captured_easy("text_model")
    lowered = TARGET.lower(job_for(TARGET, captured))
    path = lowered.save(tmp_path)
    weights = sum(parameter.numel() * 4 for parameter in captured.module.parameters())
    assert (tmp_path / "model.bin").stat().st_size >= weights
    example = captured.unseen[0]
    torch.save([example.tensors(), list(example.call(captured.module).values())], tmp_path / "call.pt")
    code = (
        "import sys, torch; from pathlib import Path\n"
        "from ace_studio.engine.targets import TARGETS\n"
        "inputs, expected = torch.load(sys.argv[2], weights_only=True)\n"
        "got = TARGETS['openvino'].load(Path(sys.argv[1]), threads=1)(*inputs)\n"
        "assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(got, expected, strict=True))\n"
    )
    subprocess.run([sys.executable, "-c", code, str(path), str(tmp_path / "call.pt")], check=True, timeout=120)


class ConvolutionAndScores(nn.Module):
    """A convolution, which OpenVINO runs at fp32, and a product of two computed values."""

    def __init__(self):
        super().__init__()
        self.conv, self.linear = nn.Conv1d(32, 32, 3), nn.Linear(32, 32)

    def forward(self, x):
        rows = self.linear(self.conv(x).transpose(1, 2))
        return rows @ rows.transpose(1, 2)


@pytest.mark.parametrize("precision", [Precision.INT8_WEIGHT, Precision.INT8_DYNAMIC])
def test_ops_at_fp32_beside_packed_weights_are_explained_by_what_became_of_their_weights(precision):
    torch.manual_seed(0)
    captured = capture(TinyModel(ConvolutionAndScores(), [(torch.randn(n, 32, 9),) for n in (2, 3)]))
    job = job_for(TARGET, captured, precision)
    found = {one.op_id: one for one in TARGET.lower(job).read_back()}
    assert found["conv1d"].actual == found["matmul"].actual == "fp32"
    assert ("widens them" in found["conv1d"].reason) is ("conv1d" in job.plan.ops_at(precision))
    assert "scale" not in found["matmul"].reason
    assert "float activations" not in found["matmul"].reason
    assert found["linear"].actual != "fp32"


class UnreadInput(nn.Module):
    """Takes a tensor between two others, and a last one, that no op reads, as many models take masks and types."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(32, 16)

    def forward(self, x, unread, y, kinds):
        return self.linear(x) + y


@pytest.mark.parametrize("precision", [Precision.FP32, Precision.INT8_STATIC, Precision.INT8_WEIGHT])
def test_an_input_that_no_op_reads_keeps_its_place(precision, tmp_path):
    torch.manual_seed(0)
    examples = [(torch.randn(n, 32), torch.randn(n), torch.randn(n, 16), torch.ones(n, 7).long()) for n in (2, 3)]
    captured = capture(TinyModel(UnreadInput(), examples))
    lowered = TARGET.lower(job_for(TARGET, captured, precision))
    again = TARGET.load(lowered.save(tmp_path), threads=1)
    for example in examples:
        expected = captured.module(*example)
        assert sqnr_db(expected, lowered(*example)) > 25
        assert sqnr_db(expected, again(*example)[0]) > 25


@pytest.mark.parametrize(("quantizes", "actual"), [(False, "int8-weight"), (True, "int8-dynamic")])
def test_activations_that_the_processor_leaves_float_are_not_called_dynamic(quantizes, actual, monkeypatch):
    monkeypatch.setattr(openvino, "quantizes_activations", lambda: quantizes)
    captured = captured_easy("mlp")
    job = job_for(TARGET, captured, Precision.INT8_DYNAMIC)
    products = [one for one in TARGET.lower(job).read_back() if one.op_id in job.plan.ops_at(Precision.INT8_DYNAMIC)]
    assert {str(one.actual) for one in products} == {actual}
    assert all(("avx512_vnni" in one.reason) is not quantizes for one in products)
    assert ("float-activations" in {warning.code for warning in job.reporter.warnings}) is not quantizes
    assert bool(TARGET.options(job.plan, captured.table)) is quantizes


def test_larger_groups_of_activations_are_offered_for_what_rounds_them_and_kept_in_the_artifact(tmp_path, monkeypatch):
    monkeypatch.setattr(openvino, "quantizes_activations", lambda: True)
    captured = captured_easy("mlp")
    job = job_for(TARGET, captured, Precision.INT8_DYNAMIC)
    offered = TARGET.options(job.plan, captured.table)
    assert offered == [{"activation_group": "64"}, {"activation_group": "128"}]
    assert TARGET.options(job_for(TARGET, captured).plan, captured.table) == []
    lowered = TARGET.lower(replace(job, options=offered[1]))
    opened = import_openvino().Core().read_model(str(lowered.save(tmp_path)))
    assert opened.get_rt_info(["ace_studio", "DYNAMIC_QUANTIZATION_GROUP_SIZE"]).astype(str) == "128"
    example = captured.examples[0]
    assert sqnr_db(example.call(captured.module), example.call(lowered)) > 30.0


def test_a_subgraph_is_opened_with_the_options_that_it_was_measured_with(tmp_path, monkeypatch):
    core, given = import_openvino().Core(), {}

    class Core:
        read_model = core.read_model

        def compile_model(self, model, device, options):
            given.update(options)
            return core.compile_model(model, device, {**options, "INFERENCE_PRECISION_HINT": "f32"})

    captured = captured_easy("mlp")
    job = replace(job_for(TARGET, captured, Precision.INT8_DYNAMIC), options={"activation_group": "128"})
    lowered = TARGET.lower(job)
    lowered._model.set_rt_info("bf16", ["ace_studio", "INFERENCE_PRECISION_HINT"])  # not every processor computes it
    path = lowered.save(tmp_path)
    monkeypatch.setattr("openvino.Core", Core)
    run = run_pieces.OPENERS["openvino"](path, 1)
    assert given["DYNAMIC_QUANTIZATION_GROUP_SIZE"] == "128"
    assert given["INFERENCE_PRECISION_HINT"] == "bf16"
    example = captured.examples[0]
    assert sqnr_db(example.call(captured.module), run(*example.tensors())) > 30.0


def test_calibration_reports_its_way_and_can_be_cancelled():
    captured = captured_easy("conv_net")
    heard: list[object] = []
    TARGET.lower(job_for(TARGET, captured, Precision.INT8_STATIC, reporter=Reporter(heard.append)))
    assert any(isinstance(event, Progress) and "calibrating" in event.detail for event in heard)
    for detail in ("finding ranges, example 1", "calibrating, example 1"):
        with pytest.raises(Cancelled):
            TARGET.lower(job_for(TARGET, captured, Precision.INT8_STATIC, reporter=cancelled_at(detail)))


@pytest.mark.slow
def test_quantizing_prints_nothing_sends_nothing_and_leaves_no_file_in_the_home_folder(tmp_path):
    code = """
import os, socket, sys
def refuse(*args, **kwargs):
    os.write(2, b"NETWORK")
    os._exit(9)
socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refuse
sys.path[:0] = sys.argv[1:]
import torch
torch.set_num_threads(1)
from tests.engine.targets.onnx_cases import captured_easy, job_for
from ace_studio.engine.targets import TARGETS
from ace_studio.records.recipes.plan import Precision
captured = captured_easy("mlp")
for precision in (Precision.INT8_STATIC, Precision.INT8_WEIGHT):
    TARGETS["openvino"].lower(job_for(TARGETS["openvino"], captured, precision))
"""
    here = Path(__file__).parent
    home = tmp_path / "home"
    home.mkdir()
    environment = {key: value for key, value in os.environ.items() if key != "NNCF_CI" and not key.startswith("XDG")}
    done = subprocess.run(
        [sys.executable, "-c", code, str(here.parents[3])],
        env=environment | {"HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert list(home.rglob("*")) == []


def test_truth_values_in_eight_bits_are_not_called_quantized():
    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(6, 6)

        def forward(self, x):
            y = self.linear(x)
            return torch.where(x > 0, y, torch.zeros_like(y)), y > 0

    captured = capture(TinyModel(Masked().eval(), [(torch.randn(n, 6),) for n in (2, 5)]))
    columns = captured.table
    dtypes = tuple("bool" if op == "aten.gt.Scalar" else "float32" for op in columns.op)
    captured.table = msgspec.structs.replace(columns, dtype=dtypes)
    lowered = TARGET.lower(job_for(TARGET, captured, Precision.FP32))
    assert "int8-static" not in actual_of(lowered).values()


def test_values_that_a_mask_picks_are_not_called_quantized():
    class Masked(nn.Module):
        def forward(self, x, mask):
            return x.masked_fill(mask, -1.0).softmax(-1)

    captured = capture(TinyModel(Masked(), [(torch.randn(2, 4, 6), torch.rand(2, 1, 6) > 0.5)]))
    lowered = TARGET.lower(job_for(TARGET, captured, Precision.FP32))
    assert {actual.actual for actual in lowered.read_back()} <= {Precision.FP32, None}


def test_a_layer_that_is_called_twice_is_quantized_beside_a_table():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.head = nn.Embedding(64, 64), nn.Linear(64, 32)

        def forward(self, ids):
            x = self.table(ids)
            return self.head(x), self.head(x[:, -1])

    examples = [(torch.randint(0, 64, (n, 5)),) for n in (2, 3)]
    captured = capture(TinyModel(Twice().eval(), examples))
    lowered = TARGET.lower(job_for(TARGET, captured, Precision.INT8_STATIC))
    assert {actual_of(lowered)[name] for name in ("linear", "linear_1")} == {"int8-static"}
    for example in captured.examples:
        assert sqnr_db(example.call(captured.module), example.call(lowered)) > 25


@pytest.mark.parametrize("precision", [Precision.INT8_STATIC, Precision.INT8_WEIGHT])
def test_a_recurrent_sequence_stays_float_while_the_layer_behind_it_is_quantized(precision):
    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = nn.LSTM(16, 32, 2, batch_first=True, bidirectional=True)
            self.head = nn.Linear(64, 64)

        def forward(self, x):
            return self.head(self.rnn(x)[0])

    captured = capture(TinyModel(Tagger().eval(), [(torch.randn(n, t, 16),) for n, t in ((2, 9), (3, 9))]))
    lowered = TARGET.lower(job_for(TARGET, captured, precision))
    actual = actual_of(lowered)
    assert (actual["lstm"], actual["linear"]) == ("fp32", precision)
    for example in captured.examples:
        assert sqnr_db(example.call(captured.module), example.call(lowered)) > 25


def test_the_float_type_is_needed_where_openvino_takes_another_one_and_that_changes_the_results(tmp_path):
    hint = "INFERENCE_PRECISION_HINT"
    captured = captured_easy("mlp")
    lowered, example = TARGET.lower(job_for(TARGET, captured, Precision.FP32)), captured.examples[0]
    path = lowered.save(tmp_path)
    usual = import_openvino().Core().get_property("CPU", hint).to_string()
    needed = TARGET.needed_options(path, example.tensors(), tensor_leaves(example.call(lowered)))
    assert needed == ({} if usual in {"f32", "float32"} else {hint: "f32"})
    model, options = TARGET._stored(path, threads=1)
    del options[hint]
    plain = openvino._flat_function(openvino._compile(model, options))(*example.tensors())
    assert TARGET.needed_options(path, example.tensors(), plain) == {}


def test_one_position_of_an_8_bit_product_loses_its_dimension():
    class LastToken(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.head = torch.nn.Linear(16, 24), torch.nn.Linear(24, 10, bias=False)

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            scores = self.head(torch.relu(self.layer(x)))
            return scores[:, -1], scores[:, 0] + 1.0

    torch.manual_seed(0)
    examples = tuple((torch.randn(n, t, 16),) for n, t in ((1, 4), (2, 3)))
    captured = capture(TinyModel(LastToken().eval(), examples))
    lowered = TARGETS["openvino"].lower(job_for(TARGETS["openvino"], captured, Precision.INT8_STATIC))
    for example in captured.examples:
        got, wanted = lowered(*example.args), captured.module(*example.args)
        assert [one.shape for one in got] == [one.shape for one in wanted]
        assert sqnr_db(wanted, got) > 25
    found = {one.op_id: one.actual for one in lowered.read_back()}
    assert found["linear"] == Precision.INT8_STATIC


def test_it_rounds_in_pairs_where_nncf_cannot_make_the_grids():
    int8, plain = Plan(default=Precision.INT8_STATIC), RangeChoice()
    assert TARGET.int8_style(int8, plain) is NNCF
    assert TARGET.int8_style(int8, RangeChoice(Observer.MSE)) is PAIRS
    symmetric = Plan(default=Precision.INT8_STATIC, activations=ActivationGrid.SYMMETRIC)
    assert TARGET.int8_style(symmetric, plain) is PAIRS
    rule = PlanRule(match="module:0", precision=Precision.INT8_STATIC, weights=WeightGranularity.PER_TENSOR)
    assert TARGET.int8_style(Plan(default=Precision.INT8_STATIC, rules=(rule,)), plain) is PAIRS


def test_other_devices_open_it_as_the_engine_does():
    assert base_options(threads=3) == measure_there.OPENVINO_OPTIONS | {"INFERENCE_NUM_THREADS": "3"}


def test_an_artifact_is_opened_with_the_options_that_it_was_measured_with_and_the_threads_of_now(tmp_path, monkeypatch):
    job = replace(job_for(TARGET, captured_easy("mlp"), Precision.INT8_DYNAMIC), options={openvino.GROUP_OPTION: "128"})
    path = TARGET.lower(job).save(tmp_path)
    given: dict[str, str] = {}
    compiled = openvino._compile
    monkeypatch.setattr(openvino, "_compile", lambda model, options: given.update(options) or compiled(model, options))
    TARGET.load(path, threads=2)
    assert (given["DYNAMIC_QUANTIZATION_GROUP_SIZE"], given["INFERENCE_NUM_THREADS"]) == ("128", "2")
