"""A loaded model and its data sources."""

import dataclasses
from pathlib import Path

import pytest
import torch
from torch import nn

from ace_studio.engine.flow import DataSources, LoadedModel, put_in_eval_mode


def test_other_data_sources_leave_the_model_and_the_first_record_alone():
    loaded = LoadedModel(module=nn.Linear(2, 2), source=Path("m.py"), sha256="abc", data=DataSources(tracing=list))
    changed = loaded.with_data(calibration=list)
    assert (changed.data.tracing, changed.data.calibration) == (list, list)
    assert changed.module is loaded.module
    assert loaded.data.calibration is None


def test_neither_record_can_be_changed():
    loaded = LoadedModel(module=nn.Linear(2, 2), source=Path(), sha256="")
    with pytest.raises(dataclasses.FrozenInstanceError):
        loaded.sha256 = "other"
    with pytest.raises(dataclasses.FrozenInstanceError):
        loaded.data.evaluate = len


def test_the_module_of_an_exported_program_says_that_it_does_not_train():
    program = torch.export.export(nn.Sequential(nn.Linear(2, 2), nn.ReLU()).eval(), (torch.ones(1, 2),))
    module = program.module()
    put_in_eval_mode(module)
    assert not any(child.training for child in module.children())


def test_a_module_that_refuses_eval_for_another_reason_is_an_error():
    class Stubborn(nn.Module):
        def eval(self):
            raise NotImplementedError

    with pytest.raises(NotImplementedError):
        put_in_eval_mode(Stubborn())
