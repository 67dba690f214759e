"""The class of a folder is found in transformers or in the folder's code."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from torch import nn

from ace_studio.engine.load.huggingface.classes import entry_of, find_class
from ace_studio.engine.load.huggingface.folder import ModelFolder
from ace_studio.engine.progress import Reporter
from ace_studio.records.errors import AceError, ErrorCode
from tests.engine.load.samples import load, problem_of, warned


def test_the_entry_may_name_another_class_and_what_it_lacks_is_said(bert, transformers):
    reporter = Reporter()
    loaded = load(bert.parent, "bert", entry="AutoModelForTokenClassification", reporter=reporter)
    assert isinstance(loaded.module, transformers.BertForTokenClassification)
    assert "bert.pooler" in warned(reporter)["weights-left-out"]
    loaded = load(bert.parent, "bert", entry="BertModel", reporter=(reporter := Reporter()))
    assert type(loaded.module) is transformers.BertModel
    assert "classifier.weight" in warned(reporter)["weights-left-out"]


def test_a_class_that_is_not_there_is_answered_with_the_nearest(bert):
    problem = problem_of(bert.parent, "bert", entry="AutoModelForSequenceClasification")
    assert problem.code is ErrorCode.NOT_FOUND
    assert problem.remedy == "did you mean 'AutoModelForSequenceClassification'?"


class Pretrained:
    @classmethod
    def from_pretrained(cls):
        pass


LIBRARY = SimpleNamespace(
    __version__="9",
    AutoModel=Pretrained,
    AutoModelForX=type("ForX", (Pretrained,), {}),
    NewModel=type("N", (Pretrained,), {}),
)


def folder(**config) -> ModelFolder:
    return ModelFolder(Path("m"), {"model_type": "nobody-has-it", **config})


def test_the_first_known_architecture_is_taken_and_else_the_base_model():
    assert find_class(LIBRARY, folder(architectures=["Unknown", "NewModel"]), "") is LIBRARY.NewModel
    assert find_class(LIBRARY, folder(architectures=["Unknown"]), "") is LIBRARY.AutoModel


def test_code_in_the_folder_decides_which_automatic_class_is_used():
    own = folder(auto_map={"AutoModel": "m.A", "AutoModelForX": "m.B"})
    assert find_class(LIBRARY, own, "") is LIBRARY.AutoModelForX
    assert find_class(LIBRARY, own, "AutoModel") is LIBRARY.AutoModel
    with pytest.raises(AceError, match="not registered for 'AutoModelForY'"):
        find_class(LIBRARY, own, "AutoModelForY")


def test_code_that_would_be_downloaded_is_refused():
    with pytest.raises(AceError, match="code that is not in the folder"):
        find_class(LIBRARY, folder(auto_map={"AutoModel": "owner/name--m.A"}), "")


def test_a_class_is_told_by_the_first_sentence_of_its_documentation():
    class ForX(nn.Module):
        """A model by A. Author with a head on the final hidden state of
        the first token, e.g. for GLUE tasks. More of it.

        Its arguments.
        """

    said = "A model by A. Author with a head on the final hidden state of the first token, e.g. for GLUE tasks."
    assert entry_of("ForX", ForX).summary == said
    ForX.__doc__ = "Without a full stop\n\nMore."
    assert entry_of("ForX", ForX).summary == "Without a full stop"
