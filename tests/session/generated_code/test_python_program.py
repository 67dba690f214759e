"""The Python and the shell line are run here, against a recorder in the place of the engine."""

import ast
import runpy
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from ace_studio.records.messages import EntryPoint, FileReport
from ace_studio.records.recipes.plan import Plan, PlanRule, Precision, WeightGranularity
from ace_studio.records.recipes.recipe import (
    CalibrationChoice,
    CaptureChoice,
    CaptureControl,
    ControlKind,
    EvaluateChoice,
    FinetuneChoice,
    FinetuneMethod,
    Goal,
    ImproveChoice,
    ImproveMethod,
    InputsChoice,
    LimitsChoice,
    MeasureChoice,
    ModelChoice,
    PruneChoice,
    PruneMethod,
    Recipe,
    ScanChoice,
    SensitivityChoice,
    ShapesFrom,
    TargetsChoice,
)
from ace_studio.records.tensors import DimChoice, TensorSpec
from ace_studio.session.document import Document
from ace_studio.session.generated_code.python_program import _KEYWORDS, python_code, unsaid_choices

MODEL = """
class Model:
    def load_state_dict(self, state): self.state = state
def make_model(): return Model()
def make_both(): return Model(), (1, 2)
def inputs(): return []
def evaluate(predict): return 0.0
trained = "the trained model"
"""


def run(document: Document, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, dict[str, Any]]:
    """The positional argument and the keywords that the shown program calls compile with."""
    calls: list[tuple[Any, dict[str, Any]]] = []

    def compile(model: Any, **keywords: Any) -> types.SimpleNamespace:
        calls.append((model, keywords))
        return types.SimpleNamespace(report="")

    monkeypatch.setitem(sys.modules, "ace_studio", types.SimpleNamespace(compile=compile))  # type: ignore[arg-type]
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "shown_model", raising=False)
    program = folder / "program.py"
    program.write_text(python_code(document))
    runpy.run_path(str(program))
    sys.modules.pop("shown_model", None)
    (call,) = calls
    return call


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shown_model.py").write_text(MODEL)
    return tmp_path


def test_a_recipe_with_nothing_special_makes_a_short_call(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = Recipe(
        model=ModelChoice(source="shown_model.py", entry="make_model"), inputs=InputsChoice(tracing="inputs")
    )
    model, keywords = run(Document(recipe=recipe, folder=str(folder)), folder, monkeypatch)
    assert type(model).__name__ == "Model"
    assert list(keywords) == ["tracing_inputs"] and keywords["tracing_inputs"].__name__ == "inputs"


def test_examples_of_the_entry_are_passed_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = Recipe(model=ModelChoice(source="shown_model.py", entry="make_both"))
    _, keywords = run(Document(recipe=recipe, folder=str(folder)), folder, monkeypatch)
    assert keywords == {"tracing_inputs": [(1, 2)]}


def test_a_model_that_lies_in_a_variable_is_imported_and_not_called(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = Recipe(model=ModelChoice(source="shown_model.py", entry="trained"), inputs=InputsChoice(tracing="inputs"))
    entry = EntryPoint(name="trained", line=8, kind="variable", signature="")
    report = FileReport(
        path="shown_model.py", kind="python", label="", sha256="", size_bytes=1, trust="code", entries=(entry,)
    )
    model, _ = run(Document(recipe=recipe, folder=str(folder), file=report), folder, monkeypatch)
    assert model == "the trained model"


FULL = Recipe(
    model=ModelChoice(source="shown_model.py", entry="make_model"),
    inputs=InputsChoice(
        rows=(
            {
                "x": TensorSpec(shape=(1, 3)),
                "half": TensorSpec(shape=(2,), dtype="float16"),
                "mask": TensorSpec(shape=(2,), dtype="bool"),
                "ids": TensorSpec(shape=(2, 2), dtype="int64"),
                "few": TensorSpec(shape=(400,), dtype="int64", values="random 0..6"),
                "between": TensorSpec(shape=(2,), values="random -1..1"),
                "normal": TensorSpec(shape=(2,), values="normal 5 2"),
                "three": TensorSpec(shape=(2,), values="constant 3"),
                "flag": TensorSpec(shape=(), values="value True"),
                "nothing": TensorSpec(shape=(), values="none"),
                "positions": TensorSpec(shape=(2, 3), dtype="int64", values="range"),
                "state": TensorSpec(shape=(), values="zeros"),
                "stored": TensorSpec(shape=(2,), values="stored.npy"),
            },
        ),
        dims={"x.0": DimChoice.DYNAMIC},
    ),
    capture=CaptureChoice(rungs=("export",)),
    calibration=CalibrationChoice(inputs="shown_model.py:inputs", samples=8),
    evaluate=EvaluateChoice(function="evaluate", higher_is_better=False),
    plan=Plan(default=Precision.BF16, rules=(PlanRule(match="op:*", precision=Precision.FP32),)),
    goal=Goal(max_drop=0.01, min_sqnr_db=20.0, max_size_mb=5.0, max_latency_ratio=0.5, optimize="size"),  # type: ignore[arg-type]
    measure=MeasureChoice(threads="all", rounds=5, device="cpu"),
    targets=TargetsChoice(names=("eager", "openvino")),
)


def test_every_choice_becomes_a_keyword(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy

    numpy.save(folder / "stored.npy", numpy.ones(2, dtype=numpy.float32))
    _, keywords = run(Document(recipe=FULL, folder=str(folder)), folder, monkeypatch)
    (row,) = keywords.pop("tracing_inputs")
    assert (row.pop("flag"), row.pop("nothing")) == (True, None)
    assert row.pop("three").tolist() == [3, 3]
    assert set(row.pop("few").tolist()) == set(range(7))
    bounded = {name: row.pop(name) for name in ("between", "normal")}
    assert all(-1 <= one <= 1 for one in bounded["between"]) and all(-7 <= one <= 17 for one in bounded["normal"])
    shapes = {name: (tuple(tensor.shape), str(tensor.dtype)) for name, tensor in row.items()}
    assert shapes == {
        "x": ((1, 3), "torch.float32"),
        "half": ((2,), "torch.float16"),
        "mask": ((2,), "torch.bool"),
        "ids": ((2, 2), "torch.int64"),
        "positions": ((2, 3), "torch.int64"),
        "state": ((), "torch.float32"),
        "stored": ((2,), "torch.float32"),
    }
    assert row["positions"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert keywords.pop("calibration_inputs").__name__ == "inputs"
    assert keywords.pop("evaluate").__name__ == "evaluate"
    assert keywords == {
        "higher_is_better": False, "dims": {"x.0": "dynamic"}, "default": "bf16", "rules": [("op:*", "fp32")],
        "max_drop": 0.01, "min_sqnr_db": 20.0, "max_size_mb": 5.0, "max_latency_ratio": 0.5, "optimize": "size",
        "target": ["eager", "openvino"], "rungs": ["export"], "samples": 8, "threads": "all", "rounds": 5,
        "device": "cpu",
    }  # fmt: skip


def test_the_function_takes_every_keyword_that_is_shown(folder: Path, root: Path) -> None:
    api = ast.parse((root / "ace_studio" / "api.py").read_text())
    (function,) = (node for node in api.body if isinstance(node, ast.FunctionDef) and node.name == "compile")
    known = {argument.arg for argument in function.args.kwonlyargs}
    assert set(_KEYWORDS.values()) <= known
    shown = ast.parse(python_code(Document(recipe=FULL, folder=str(folder))))
    (call,) = (
        node
        for node in ast.walk(shown)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "ace_studio.compile"
    )
    assert {keyword.arg for keyword in call.keywords} <= known


@pytest.mark.parametrize(
    ("source", "entry", "expected"),
    [
        ("w.safetensors", "shown_model.py:make_model", "model.load_state_dict(load_file("),
        ("w.pt", "shown_model.py:make_model", "weights_only=True"),
        ("w.pt:ema.net", "shown_model.py:make_model", "/w.pt', weights_only=True)['ema']['net'])"),
        ("m.pt2", "", "torch.export.load("),
        ("m.pt", "", "weights_only=False"),
    ],
)
def test_other_files_are_opened_by_what_opens_them(source: str, entry: str, expected: str) -> None:
    recipe = Recipe(model=ModelChoice(source=source, entry=entry), inputs=InputsChoice(tracing="f.py:inputs"))
    code = python_code(Document(recipe=recipe, folder="/m"))
    ast.parse(code)
    assert expected in code


def test_a_choice_that_the_function_has_no_keyword_for_is_named_with_the_line_that_does_it() -> None:
    recipe = Recipe(
        model=ModelChoice(source="m.py", entry="make"),
        calibration=CalibrationChoice(mean=(0.5,)),
        improve=ImproveChoice(methods=(ImproveMethod.EQUALIZE,)),
        plan=Plan(weights=WeightGranularity.PER_TENSOR),
    )
    assert unsaid_choices(recipe) == ["calibration.mean"]
    code = python_code(Document(recipe=recipe, folder="/x"))
    compile(code, "shown", "exec")
    assert "no keyword for calibration.mean" in code
    assert "weights='per-tensor'" in code
    assert "improve=['equalize']" in code
    assert code.splitlines()[-1].startswith("# ace-studio run")
    assert unsaid_choices(Recipe(limits=LimitsChoice(step_s=9))) == []  # it changes nothing that is computed


def test_inputs_in_containers_and_of_several_in_a_file_become_what_forward_takes(folder, monkeypatch) -> None:
    import numpy
    import torch

    numpy.savez(folder / "a.npz", x=numpy.ones(1), y=numpy.ones(2))
    torch.save({"y": torch.ones(3)}, folder / "b.pt")
    cell = TensorSpec(shape=(), values="value 1")
    row = {"state.1": cell, "state.0.h": cell, "more.0": cell, "x": TensorSpec(shape=(), values="a.npz:y"),
           "y": TensorSpec(shape=(), values="b.pt")}  # fmt: skip
    recipe = Recipe(
        model=ModelChoice(source="shown_model.py", entry="make_model"),
        inputs=InputsChoice(rows=(row,), tuples=("state",)),
    )
    assert unsaid_choices(recipe) == []
    _, keywords = run(Document(recipe=recipe, folder=str(folder)), folder, monkeypatch)
    (example,) = keywords["tracing_inputs"]
    assert (len(example.pop("x")), len(example.pop("y"))) == (2, 3)
    assert example == {"state": ({"h": 1}, 1), "more": [1]}


def test_how_to_capture_and_the_grids_of_rules_become_keywords(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = PlanRule(match="type:Linear", precision=Precision.INT4_WEIGHT, group_size=64)
    recipe = Recipe(
        model=ModelChoice(source="shown_model.py", entry="make_model"),
        inputs=InputsChoice(tracing="inputs"),
        capture=CaptureChoice(time_limit_s=9.0, compare_rungs=True, batch_only=True),
        sensitivity=SensitivityChoice(scan=ScanChoice.ON),
        plan=Plan(rules=(rule,)),
        targets=TargetsChoice(sizes={"x.0": (1, 2, 3)}),
    )
    assert unsaid_choices(recipe) == []
    _, keywords = run(Document(recipe=recipe, folder=str(folder)), folder, monkeypatch)
    del keywords["tracing_inputs"]
    assert keywords == {
        "default": "fp32", "rules": [{"match": "type:Linear", "precision": "int4-weight", "group_size": 64}],
        "time_limit_s": 9.0, "compare_rungs": True, "batch_only": True, "sensitivity": {"scan": "on"},
        "sizes": {"x.0": (1, 2, 3)},
    }  # fmt: skip


def test_no_choice_is_left_out_in_silence() -> None:
    recipe = Recipe(
        model=ModelChoice(source="m.py", entry="make"),
        inputs=InputsChoice(rows=({"args.0": TensorSpec(shape=(1,))},), caught="c", shapes_from=ShapesFrom.DATA),
        capture=CaptureChoice(controls=(CaptureControl(function="m:f", treat_as=ControlKind.LEAF),), cache=False),
        limits=LimitsChoice(examples=3),
    )
    assert unsaid_choices(recipe) == [
        "inputs.caught", "limits.examples", "inputs.rows of *args or calibration data",
    ]  # fmt: skip
    code = python_code(Document(recipe=recipe, folder="/x"))
    assert "shapes_from='data'" in code and "('m:f', 'leaf')," in code


def test_pruning_and_fine_tuning_become_keywords(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = Recipe(
        model=ModelChoice(source="shown_model.py", entry="make_model"),
        inputs=InputsChoice(tracing="inputs"),
        prune=PruneChoice(method=PruneMethod.STRUCTURED, amount=0.3),
        finetune=FinetuneChoice(method=FinetuneMethod.TRAIN, data="inputs", loss="evaluate", epochs=2),
    )
    _, keywords = run(Document(recipe=recipe, folder=str(folder)), folder, monkeypatch)
    assert keywords["prune"] == {"method": "structured", "amount": 0.3}
    assert keywords["finetune"] == {"method": "train", "epochs": 2}
    assert keywords["finetune_data"].__name__ == "inputs"
    assert keywords["finetune_loss"].__name__ == "evaluate"


def test_calibration_data_in_a_file_is_left_to_the_command_line() -> None:
    recipe = Recipe(model=ModelChoice(source="m.py"), calibration=CalibrationChoice(inputs="data.npz"))
    assert unsaid_choices(recipe) == ["calibration.inputs from a file"]
    ast.parse(python_code(Document(recipe=recipe, folder="/x")))


def test_tracing_inputs_in_a_file_are_left_to_the_command_line_too() -> None:
    for given in ("data.npz", "photos/"):
        recipe = Recipe(model=ModelChoice(source="m.py", entry="make"), inputs=InputsChoice(tracing=given))
        assert unsaid_choices(recipe) == ["inputs.tracing from a file"]
        code = python_code(Document(recipe=recipe, folder="/x"))
        assert given not in "".join(line for line in code.splitlines() if not line.startswith("#"))


def test_nothing_open_is_a_comment() -> None:
    assert python_code(Document()).startswith("#")


@pytest.mark.parametrize(
    ("kind", "source", "entry", "line"),
    [
        ("timm", "timm:resnet18", "", "model = timm.create_model('resnet18', pretrained=False)"),
        ("torchvision", "torchvision:vgg11", "", "model = torchvision.models.get_model('vgg11', weights=None)"),
        ("huggingface", "bert", "BertModel", "model = transformers.BertModel.from_pretrained("),
        ("onnx", "m.onnx", "", "model = ...  # compile() takes PyTorch models"),
    ],
)
def test_models_that_lie_in_no_python_file_are_made_by_their_package(kind, source, entry, line, tmp_path) -> None:
    report = FileReport(path=source, kind=kind, label="", sha256="", size_bytes=0, trust="data")
    recipe = Recipe(model=ModelChoice(source=source, entry=entry))
    text = python_code(Document(recipe=recipe, folder=str(tmp_path), file=report))
    assert line in text
    compile(text, "shown", "exec")
