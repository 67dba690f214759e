"""Examples from a folder of images."""

import pytest
import torch

from ace_studio.engine.examples import images
from ace_studio.engine.examples.images import ImageScaling, examples_from_images
from ace_studio.engine.examples.wanted import WantedInput
from ace_studio.engine.flow import Example
from ace_studio.records.errors import AceError, ErrorCode

pillow = pytest.importorskip("PIL.Image", reason="needs Pillow")
IDS = WantedInput("ids", torch.zeros(2, 7, dtype=torch.int64), frozenset({0, 1}))
X = WantedInput("x", torch.zeros(1, 3, 8, 6), frozenset({0}))
FORM_X = Example((X.template,))


def _tensors(examples):
    return [example.tensors()[0] for example in examples]


def _save(path, colour, size=(20, 10)):
    path.parent.mkdir(parents=True, exist_ok=True)
    pillow.new("RGB", size, colour).save(path)


def test_pictures_are_resized_and_scaled(tmp_path):
    _save(tmp_path / "b.png", (0, 0, 0))
    _save(tmp_path / "deep" / "a.PNG", (255, 0, 51))
    (tmp_path / "notes.txt").write_text("no picture")
    scaling = ImageScaling(mean=(0.5, 0.5, 0.5), std=(0.5, 1.0, 1.0))
    first, second = _tensors(examples_from_images(tmp_path, FORM_X, [X], samples=9, scaling=scaling))
    assert first.shape == X.template.shape
    assert torch.equal(first[0, :, 0, 0], torch.tensor([-1.0, -0.5, -0.5]))
    assert second[0, :, 3, 3].tolist() == pytest.approx([1.0, -0.5, -0.3])


def test_one_channel_makes_pictures_grey_and_channels_may_come_last(tmp_path):
    _save(tmp_path / "a.png", (255, 255, 255))
    grey = WantedInput("x", torch.zeros(2, 1, 4, 5))
    last = WantedInput("x", torch.zeros(1, 4, 5, 3))
    for wanted in (grey, last):
        (found,) = _tensors(examples_from_images(tmp_path, Example((wanted.template,)), [wanted], samples=9))
        assert torch.equal(found, torch.ones_like(wanted.template))


def test_a_folder_without_pictures_and_a_model_without_pictures_are_told(tmp_path):
    with pytest.raises(AceError, match="no images"):
        list(examples_from_images(tmp_path, FORM_X, [X], samples=9))
    _save(tmp_path / "a.png", (1, 2, 3))
    with pytest.raises(AceError, match="does not fit"):
        list(examples_from_images(tmp_path, Example((IDS.template,)), [IDS], samples=9))
    with pytest.raises(AceError, match="2 values for 3 channels"):
        list(examples_from_images(tmp_path, FORM_X, [X], samples=9, scaling=ImageScaling(mean=(0.5, 0.5))))
    (tmp_path / "0.png").write_bytes(b"broken")
    with pytest.raises(AceError, match=r"0\.png"):
        list(examples_from_images(tmp_path, FORM_X, [X], samples=9))


def test_a_picture_that_is_a_program_for_ghostscript_is_not_given_to_it(tmp_path, monkeypatch):
    program = tmp_path / "bin" / "gs"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ntouch {tmp_path / 'ran'}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    box = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\nshowpage\n%%EOF\n"
    (tmp_path / "a.png").write_bytes(box)
    with pytest.raises(AceError, match=r"a\.png"):
        list(examples_from_images(tmp_path, FORM_X, [X], samples=9))
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".bmp", ".webp", ".gif", ".tif"])
def test_every_kind_of_picture_is_read(tmp_path, suffix):
    _save(tmp_path / f"a{suffix}", (0, 0, 0))
    assert len(_tensors(examples_from_images(tmp_path, FORM_X, [X], samples=9))) == 1


def test_without_pillow_the_install_line_is_given(tmp_path, monkeypatch):
    monkeypatch.setattr(images.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(AceError) as caught:
        list(examples_from_images(tmp_path, FORM_X, [X], samples=9))
    assert caught.value.problem.code is ErrorCode.NOT_INSTALLED
    assert "pillow" in caught.value.problem.remedy
