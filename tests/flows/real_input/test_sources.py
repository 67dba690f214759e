"""Every kind of source becomes a file on disk within eight clicks and five minutes. On request: pytest -m benchmark."""

import importlib.util
import subprocess
import sys
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


VIT = """
import transformers
config = transformers.ViTConfig(
    image_size=16, patch_size=8, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
)
transformers.ViTForImageClassification(config).save_pretrained(sys.argv[1])
"""


def needs(package: str) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"not installed: {package}")


def make(code: str, person: Person, name: str) -> None:
    """Run code that writes a file or folder of the person; a process of its own may import what it likes."""
    first = "import sys; from ace_studio.engine.load import make_importable; make_importable()\n"
    command = [sys.executable, "-c", first + code, str(person.folder / name)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)


def code_with_weights(person: Person) -> None:
    (person.folder / "net.py").write_text(MODEL, encoding="utf-8")
    make(f"{MODEL}\ntorch.save(make_model().state_dict(), sys.argv[1])", person, "net.pth")
    person.click("Open a model…")
    person.choose_file(person.folder / "net.py")


def weights_alone(person: Person) -> None:
    needs("timm")
    make(
        "import timm, torch; torch.save(timm.create_model('test_resnet').state_dict(), sys.argv[1])", person, "net.pth"
    )
    person.click("Open a model…")
    person.choose_file(person.folder / "net.pth")
    person.click(".*test_resnet", role="Button", within_s=120)


def hugging_face(person: Person) -> None:
    needs("transformers")
    make(VIT, person, "vit")
    person.click("File", role="MenuItem")
    person.click("Open a folder", role="MenuItem")
    person.choose_file(person.folder / "vit")


def is_next(person: Person, step: str) -> bool:
    return any(one["name"].startswith(f"{step}: next") for one in person.look())


SOURCES = (example, onnx, code_with_weights, weights_alone, hugging_face)


@pytest.mark.parametrize("come", SOURCES)
def test_a_source_becomes_a_file_within_eight_clicks(person_at, come):
    file_by_clicks(person_at(come.__name__), come)


def file_by_clicks(person: Person, come: Callable[[Person], None]) -> None:
    """Everything from the start page to the exported file."""
    person.start()
    person.clicks, begin_s = 0, time.monotonic()
    come(person)
    person.wait(lambda _: is_next(person, "Trust") or is_next(person, "Run"), "the next step", within_s=MOST_S)
    if is_next(person, "Trust"):
        person.click("Trust: next")
    person.click("Run: next")
    person.click("Export: next", within_s=MOST_S)
    person.choose_file(person.folder / "artifact")
    path = person.reads("Exported to ").split("Exported to ")[1].split(" (")[0]
    person.shoot("exported")
    took_s = time.monotonic() - begin_s
    print(f"{come.__name__}: {person.clicks} clicks, {took_s:.0f} s")
    assert Path(path).exists()
    assert person.clicks <= MOST_CLICKS
    assert took_s <= MOST_S
    person.quit()
