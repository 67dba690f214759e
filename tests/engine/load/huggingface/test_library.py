"""transformers is imported late, without its messages and without network access."""

import logging
import os
import pickle
import warnings
from functools import partial

import pytest
import torch

from ace_studio.engine.load.huggingface.library import install_line, offline_and_quiet, silence
from ace_studio.records.errors import ErrorCode
from tests.engine.load.samples import Plain, problem_of


def test_without_transformers_the_line_that_installs_it_is_said(bert, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)
    problem = problem_of(bert.parent, "bert")
    assert problem.code is ErrorCode.NOT_INSTALLED
    assert problem.remedy.endswith("-m pip install transformers")


def test_messages_are_silent_inside_and_as_before_afterwards():
    before = logging.root.manager.disable
    with silence():
        assert not logging.getLogger("x").isEnabledFor(logging.WARNING)
        warnings.warn("lost", stacklevel=1)
    assert logging.root.manager.disable == before


def test_downloads_are_forbidden_inside_only(transformers, monkeypatch):
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    level = transformers.utils.logging.get_verbosity()
    with pytest.raises(ValueError), offline_and_quiet(transformers, runs_code=False):
        assert os.environ["HF_HUB_OFFLINE"] == "1"
        raise ValueError
    assert "HF_HUB_OFFLINE" not in os.environ
    assert transformers.utils.logging.get_verbosity() == level


def test_no_library_unpickles_unless_the_folder_s_code_is_trusted(transformers, tmp_path, monkeypatch):
    monkeypatch.delenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", raising=False)
    torch.save(Plain(), tmp_path / "m.pt")
    unpickle = partial(torch.load, weights_only=False)  # noqa: TID251 - as a library does
    with offline_and_quiet(transformers, runs_code=False), pytest.raises(pickle.UnpicklingError):
        unpickle(tmp_path / "m.pt")
    with offline_and_quiet(transformers, runs_code=True):
        assert isinstance(unpickle(tmp_path / "m.pt"), Plain)
    assert "TORCH_FORCE_WEIGHTS_ONLY_LOAD" not in os.environ


def test_the_install_line_names_the_interpreter():
    assert install_line("transformers") == f"{__import__('sys').executable} -m pip install transformers"
