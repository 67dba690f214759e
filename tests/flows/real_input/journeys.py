"""What several journeys do: the way from the start page to a file, and the models that are opened."""

import textwrap
from pathlib import Path

from tests.flows.real_input.person import ENGINE_S, Person

MODEL = textwrap.dedent(
    """
    import torch
    from torch import nn


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(16, 64)
            self.last = nn.Linear(64, 4)

        def forward(self, x):
            hidden = torch.relu(self.inner(x))
            return self.last(hidden)


    def make_model():
        torch.manual_seed(0)
        return Net().eval()


    def tracing_inputs():
        return [(torch.randn(rows, 16),) for rows in (2, 5)]
    """
)
RECIPE = """
format = 1

[model]
source = "net.py"
entry = "make_model"

[inputs]
tracing = "tracing_inputs"

[plan]
default = "int8-dynamic"

[measure]
rounds = 5

[targets]
names = ["onnxruntime"]
"""
BRANCH = MODEL.replace(
    "        return self.last(hidden)\n",
    "        if hidden.sum() > 100:\n            hidden = hidden * 2\n        return self.last(hidden)\n",
)


def write_model(folder: Path, code: str = MODEL) -> Path:
    """``net.py`` and a recipe that runs it on one target in seconds; returns the recipe."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "net.py").write_text(code, encoding="utf-8")
    recipe = folder / "net.toml"
    recipe.write_text(RECIPE, encoding="utf-8")
    return recipe


def trace_by_keys(person: Person) -> None:
    """Trust the file that is open, and trace it."""
    person.find("Trust: next")
    person.tab_to("Trust: next")
    person.press("space")
    person.find("Run: next")
    person.press("F5")
    person.find("Trace: done", within_s=ENGINE_S)
    person.reads(r"\d+ ops$")


def run_by_keys(person: Person) -> None:
    """Run, and wait for results."""
    person.press("F6")
    person.find("Run: going on|Run: working")
    person.shoot("running")
    person.find("Run: done", within_s=ENGINE_S)
    person.find("Comparison of targets", role="Table")
    person.shoot("results")


def export_by_keys(person: Person, name: str) -> Path:
    """Export the chosen artifact to a file of the user; returns the file."""
    path = person.folder / name
    person.press("ctrl+e")
    person.find("File name", role="EditableText")
    person.press("ctrl+a")
    person.write(str(path))
    person.press("Return")
    person.reads("Exported to .*checksum")
    person.shoot("exported")
    return path
