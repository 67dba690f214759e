"""The callables of a file come from its syntax tree."""

import pytest

from ace_studio.engine.load.entries import list_entries, parse_source
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.messages import EntryRole


def entries(tmp_path, text):
    return {entry.name: entry for entry in list_entries(parse_source(tmp_path / "m.py", text.encode()))}


def test_functions_and_classes_are_listed_with_their_signature(tmp_path):
    found = entries(
        tmp_path,
        '''
import torch.nn as nn
raise SystemExit("this must not run")
def make(width: int = 8, *, depth) -> nn.Module:
    """Build it.

    More."""
class Net(nn.Module):
    def __init__(self, classes, width=4): ...
class Small(Net):
    pass
class Config:
    pass
short = lambda: Net(3)
def _private(): ...
''',
    )
    assert list(found) == ["make", "Net", "Small", "Config", "short"]
    assert (found["make"].kind, found["make"].line, found["make"].required_arguments) == ("function", 4, 1)
    assert found["make"].signature == "(width: int=8, *, depth) -> nn.Module"
    assert found["make"].summary == "Build it."
    assert (found["Net"].kind, found["Net"].is_module, found["Net"].required_arguments) == ("class", True, 1)
    assert found["Net"].signature == "(classes, width=4)"
    assert (found["Small"].is_module, found["Small"].required_arguments) == (True, 1)
    assert (found["Config"].is_module, found["Config"].required_arguments) == (False, 0)
    assert found["short"].required_arguments == 0


def test_definitions_inside_if_and_try_count_but_not_the_script_part(tmp_path):
    found = entries(
        tmp_path,
        """
try:
    import fast
except ImportError:
    def make(): ...
else:
    def other(): ...
if True:
    class Net: ...
if __name__ == "__main__":
    def script(): ...
""",
    )
    assert set(found) == {"make", "other", "Net"}


def test_a_variable_that_holds_a_model_is_listed_with_it(tmp_path):
    found = entries(
        tmp_path,
        """
class Net(nn.Module): ...
class MyLoss(nn.Module): ...
teacher = Net(8).to(device).eval()
resnet = timm.create_model("resnet18")
model_name = pick_name()
criterion = MyLoss()
optimizer = torch.optim.Adam(teacher.parameters())
weights = load("w.pt")
if __name__ == "__main__":
    other_model = Net(4)
""",
    )
    models = {name: one for name, one in found.items() if one.kind == "variable"}
    assert set(models) == {"teacher", "resnet"}
    assert all(one.role is EntryRole.MODEL and not one.required_arguments for one in models.values())


def test_the_last_of_equal_names_counts(tmp_path):
    assert entries(tmp_path, "def f(a): ...\ndef f(): ...\n")["f"].required_arguments == 0


def test_classes_that_inherit_in_a_circle_end(tmp_path):
    assert not entries(tmp_path, "class A(B): ...\nclass B(A): ...\n")["A"].is_module


def test_other_encodings_are_read(tmp_path):
    source = "# -*- coding: latin-1 -*-\ndef f():\n    'ä'\n".encode("latin-1")
    assert list_entries(parse_source(tmp_path / "m.py", source))[0].summary == "ä"


@pytest.mark.parametrize(
    "content",
    [b"def f(:\n", b"x = '\xff'\n", b"x = 1\0", b"(" * 5000, b"# coding: nonsense\nx=1\n", b"-" * 200_000 + b"1"],
    ids=["syntax", "not utf-8", "null byte", "nested", "encoding", "deep expression"],
)
def test_what_python_cannot_parse_is_a_bad_file_with_a_cause(tmp_path, content):
    with pytest.raises(AceError) as caught:
        parse_source(tmp_path / "m.py", content)
    problem = caught.value.problem
    assert problem.code is ErrorCode.BAD_FILE
    assert problem.remedy
    assert "m.py" in problem.where


def test_a_syntax_error_has_its_line(tmp_path):
    with pytest.raises(AceError) as caught:
        parse_source(tmp_path / "m.py", b"import torch\n\ndef make(\n")
    assert caught.value.problem.where.endswith("m.py:3")
