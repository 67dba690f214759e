"""What a callable is for follows from its name in any spelling, its signature and what it gives."""

import pytest

from ace_studio.engine.load.entries import list_entries, parse_source
from ace_studio.engine.load.roles import loads_weights, words_of
from ace_studio.records.messages import EntryRole

NET = """
from torch import nn
class Part(nn.Module): ...
class Whole(nn.Module):
    def __init__(self):
        self.a = Part()
"""


def source(tmp_path, text):
    return parse_source(tmp_path / "m.py", text.encode())


@pytest.mark.parametrize(
    ("text", "role"),
    [
        ("def getCalibData():\n    return [1]", EntryRole.CALIBRATION),
        ("def calibration_batches():\n    yield 1", EntryRole.CALIBRATION),
        ("def dummy_inputs():\n    return [1]", EntryRole.TRACING),
        ("def example():\n    return 1", EntryRole.TRACING),
        ("def val_loader():\n    return []", EntryRole.DATA),
        ("def top1_score(predict):\n    return float(predict(1))", EntryRole.EVALUATE),
        ("def Accuracy(f):\n    return f(1)", EntryRole.EVALUATE),
        ("def eval_model(model):\n    model.eval()\n    return 1.0", EntryRole.NONE),
        ("def score(predict, data):\n    return 1.0", EntryRole.NONE),
        ("def trained():\n    made = Whole()\n    return made", EntryRole.MODEL),
        ("def build_classifier():\n    return something()", EntryRole.MODEL),
        ("def anything() -> nn.Module:\n    return something()", EntryRole.MODEL),
        ("def print_data():\n    print(1)", EntryRole.NONE),
        ("def helper():\n    return 1", EntryRole.NONE),
    ],
)
def test_a_function_has_the_role_that_it_looks_like(tmp_path, text, role):
    assert list_entries(source(tmp_path, NET + text))[-1].role is role


def test_a_class_that_another_one_is_made_of_is_a_part(tmp_path):
    assert [one.role for one in list_entries(source(tmp_path, NET))] == [EntryRole.PART, EntryRole.MODEL]


def test_the_words_of_a_name_are_the_same_in_every_spelling():
    assert {"get", "calib", "data"} <= words_of("getCalibData") & words_of("get_calib_data") & words_of(
        "GET_CALIB_DATA"
    )


@pytest.mark.parametrize(
    ("line", "does"),
    [
        ("model.load_state_dict(state)", True),
        ("torch.load('a.pth')", True),
        ("AutoModel.from_pretrained('x')", True),
        ("json.load(file)", False),
    ],
)
def test_code_that_reads_weights_is_told_from_code_that_does_not(tmp_path, line, does):
    assert loads_weights(source(tmp_path, f"def f():\n    {line}").tree) is does
