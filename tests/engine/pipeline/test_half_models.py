"""Models with 16-bit weights: a copy at fp32 and its data."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

import ace_studio
from ace_studio.engine.flow import DataSources, Example, LoadedModel
from ace_studio.engine.pipeline.half_models import at_fp32
from ace_studio.engine.progress import Reporter


class Net(nn.Module):
    """Two layers, a float64 and an integer buffer, and a counter."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
        self.register_buffer("places", torch.arange(4))
        self.register_buffer("exact", torch.ones(4, dtype=torch.float64))
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return self.layers(x) + self.places


class FixedType(nn.Linear):
    """Forward names the type of its weights."""

    def forward(self, x):
        return super().forward(x.to(torch.bfloat16))


def halved(module, dtype=torch.bfloat16):
    for one in module.parameters():
        one.data = one.data.to(dtype)
    return module.eval()


def loaded_from(module, **data):
    return LoadedModel(module=module, source=None, sha256="", data=DataSources(**data))


def rows(dtype=torch.bfloat16):
    return tuple(Example.of((torch.randn(size, 8).to(dtype),)) for size in (2, 3))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_copy_has_the_same_numbers_at_fp32_and_the_module_of_the_user_stays(dtype):
    module, reporter = halved(Net(), dtype), Reporter()
    loaded, examples = at_fp32(loaded_from(module), rows(dtype), reporter)
    types = {name: one.dtype for name, one in loaded.module.state_dict().items()}
    assert types.pop("places") == torch.int64
    assert types.pop("exact") == torch.float64
    assert set(types.values()) == {torch.float32}
    pairs = zip(loaded.module.parameters(), module.parameters(), strict=True)
    assert all(torch.equal(one, other.float()) for one, other in pairs)
    assert {one.dtype for one in module.parameters()} == {dtype}
    assert (loaded.module.calls, module.calls) == (0, 0)
    assert [leaf.dtype for one in examples for leaf in one.tensors()] == [torch.float32] * 2
    assert [one.code for one in reporter.warnings] == ["half-model"]
    assert "converted to float32" in reporter.warnings[0].what
    given = loaded.given.example(examples[0])
    assert given.args[0].dtype == dtype
    assert given.call(loaded.given.module).shape == (2, 4)


def test_all_that_functions_of_the_user_give_is_at_fp32():
    half = torch.ones(2, 8, dtype=torch.bfloat16)

    def batches():
        yield {"x": half, "mask": torch.ones(2, dtype=torch.bool)}
        yield half, [half, 3]

    seen = []
    loaded, _ = at_fp32(
        loaded_from(
            halved(Net()),
            tracing=lambda: [(half,)],
            calibration=batches,
            labelled=lambda: half,
            evaluate=lambda predict: predict(half, more=[half]),
        ),
        rows(),
        Reporter(),
    )
    first, second = loaded.data.calibration()
    assert loaded.data.calibration.__name__ == "batches"
    assert (first["x"].dtype, first["mask"].dtype) == (torch.float32, torch.bool)
    assert (second[0].dtype, second[1][0].dtype, second[1][1]) == (torch.float32, torch.float32, 3)
    assert loaded.data.labelled().dtype == loaded.data.tracing()[0][0].dtype == torch.float32
    loaded.data.evaluate(lambda x, *, more: seen.extend([x.dtype, more[0].dtype]))
    assert seen == [torch.float32] * 2


def test_a_model_that_names_its_type_stays_as_it_is():
    loaded, examples, reporter = loaded_from(halved(FixedType(8, 4))), rows(), Reporter()
    assert at_fp32(loaded, examples, reporter) == (loaded, examples)
    assert "does not run at float32 (RuntimeError" in reporter.warnings[0].what


def test_a_model_at_fp32_is_left_alone():
    loaded, examples, reporter = loaded_from(Net().eval()), rows(torch.float32), Reporter()
    assert at_fp32(loaded, examples, reporter) == (loaded, examples)
    assert reporter.warnings == []


def test_a_model_at_bfloat16_is_compressed_for_a_runtime_without_it(tmp_path):
    module = halved(Net())
    batches = [(torch.randn(size, 8).bfloat16(),) for size in (2, 5)]
    result = ace_studio.compile(
        module, tracing_inputs=batches, calibration_inputs=batches, target="onnxruntime", default="int8-dynamic",
        evaluate=lambda predict: float(predict(torch.ones(3, 8, dtype=torch.bfloat16)).abs().mean()), out=tmp_path,
    )  # fmt: skip
    run = result.report.runs[0]
    assert (run.status, run.precision) == ("ok", "int8-dynamic")
    assert run.sqnr_db > 25
    x = batches[1][0].float()
    expected = halved(copy.deepcopy(module), torch.float32)(x)
    np.testing.assert_allclose(result.module(x).numpy(), expected.detach().numpy(), atol=0.1)
