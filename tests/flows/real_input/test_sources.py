"""Every kind of source becomes a file on disk within eight clicks and five minutes. On request: pytest -m benchmark."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.engine.load.onnx_samples import write_classifier
from tests.flows.real_input.journeys import MODEL
from tests.flows.real_input.person import Person

pytestmark = [pytest.mark.benchmark, pytest.mark.slow, pytest.mark.timeout(900)]

MOST_CLICKS = 8
MOST_S = 300


def example(person: Person) -> None:
    person.click("Open the example")


def onnx(person: Person) -> None:
    path = write_classifier(person.folder / "net.onnx")
    person.click("Open a model…")
    person.choose_file(path)


def code_with_weights(person: Person) -> None:
    import torch

    space: dict[str, object] = {}
    exec(MODEL, space)
    (person.folder / "net.py").write_text(MODEL, encoding="utf-8")
    torch.save(space["make_model"]().state_dict(), person.folder / "net.pth")
    person.click("Open a model…")
    person.choose_file(person.folder / "net.py")


def weights_alone(person: Person) -> None:
    timm = pytest.importorskip("timm")
    import torch

    torch.save(timm.create_model("test_resnet").state_dict(), person.folder / "net.pth")
    person.click("Open a model…")
    person.choose_file(person.folder / "net.pth")
    person.click(".*test_resnet", role="Button", within_s=120)


def hugging_face(person: Person) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.ViTConfig(
        image_size=16, patch_size=8, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    transformers.utils.logging.disable_progress_bar()
    transformers.ViTForImageClassification(config).save_pretrained(person.folder / "vit")
    person.click("File", role="MenuItem")
    person.click("Open a folder", role="MenuItem")
    person.find("Directory", role="EditableText")
    person.screen.press("ctrl+a")
    person.write(str(person.folder / "vit"))
    person.click("Choose|Open", role="Button")


def is_next(person: Person, step: str) -> bool:
    return any(one["name"].startswith(f"{step}: next") for one in person.look())


@pytest.mark.parametrize("come", [example, onnx, code_with_weights, weights_alone, hugging_face])
def test_a_source_becomes_a_file_within_eight_clicks(person_at, come: Callable[[Person], None]):
    person = person_at(come.__name__)
    person.start()
    person.clicks, begin_s = 0, time.monotonic()
    come(person)
    person.wait(lambda _: is_next(person, "Trust") or is_next(person, "Run"), "the next step", within_s=MOST_S)
    if is_next(person, "Trust"):
        person.click("Trust: next")
    person.click("Run: next")
    person.click("Export: next", within_s=MOST_S)
    path: Path = person.folder / "artifact"
    person.choose_file(path)
    person.reads("Exported to ")
    person.shoot("exported")
    took_s = time.monotonic() - begin_s
    print(f"{come.__name__}: {person.clicks} clicks, {took_s:.0f} s")
    assert path.exists()
    assert person.clicks <= MOST_CLICKS
    assert took_s <= MOST_S
    person.quit()
