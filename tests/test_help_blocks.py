"""Every code block of the help and of the README works as it stands: commands, recipes, Python and C++."""

import importlib.util
import re
import shlex
import shutil
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
import typer.main

import ace_studio
from ace_studio.cli import commands, follow, run_command
from ace_studio.cli.app import app
from ace_studio.jobs.client import WorkerClient
from ace_studio.jobs.executors import WorkerExecutor
from ace_studio.records.recipes.file import parse_recipe
from ace_studio.records.sweep_file import checked_sweep
from tests.help_blocks import LANGUAGES, Block, blocks_of, page_names

DEPLOY = ("resources/help/deploy.md", "resources/help/deploy-cpp.md")
"""Their programs are run by ``test_help_deploy.py``; here only what they ask of ``ace-studio``."""
FIRST = "resources/help/report.md"
"""It runs the example; commands of other pages use the folder of that run."""
BLOCKS = [block for page in page_names() for block in blocks_of(page)]
LIGHT = {
    'names = ["auto"]': 'names = ["onnxruntime"]',
    "rounds = 30": "rounds = 1\nprofile = false",
}
"""Changes of the example's recipe, so that its commands take seconds."""


def ids(value: object) -> str:
    return str(value)


# --- what a block may be ---


@pytest.mark.parametrize("block", BLOCKS, ids=ids)
def test_a_block_names_its_language_and_why_it_is_not_run(block):
    assert block.language in LANGUAGES
    assert not block.reason or len(block.reason.split()) >= 3
    for place in re.findall(r"(?:tests/[\w/]+\.py|[\w-]+\.md)", block.reason):
        folder = Path(block.page).parent if place.endswith(".md") else Path()
        assert (Path(__file__).parent.parent / folder / place).is_file(), place


@pytest.mark.parametrize("page", [page for page in page_names() if page != "README.md"])
def test_all_code_of_a_help_page_is_in_fenced_blocks(page, root):
    text = re.sub(r"^```.*?^```$", "", (root / page).read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert re.findall(r"\n\n    .*", text) == []


def test_every_command_line_in_the_pages_has_a_command_and_options_that_exist(root):
    known = typer.main.get_command(app).commands
    lines = [(str(block), words) for block in BLOCKS if block.language == "bash" for words in block.commands]
    for page in page_names():
        inline = re.findall(r"`(?:ace-studio|packaging/ace) ([^`\n]+)`", (root / page).read_text(encoding="utf-8"))
        lines += [(page, shlex.split(line)) for line in inline]
    assert len(lines) > 40
    for where, (name, *rest) in filter(lambda one: one[1], lines):
        if name in {"open", "setup", "test", "check", "gpu-check", "installer", "engine", "devices"} or "." in name:
            continue  # the window, a script of the checkout, or a group
        options = {
            option for parameter in known[name].params for option in (*parameter.opts, *parameter.secondary_opts)
        }
        given = rest[: rest.index("--")] if "--" in rest else rest
        assert {word for word in given if word.startswith("--")} - options == set(), f"{where}: {name}"


@pytest.mark.parametrize("block", [one for one in BLOCKS if one.language == "toml"], ids=ids)
def test_a_recipe_a_part_of_one_or_a_sweep_is_valid(block):
    if "\nrecipes = " in block.text:
        assert checked_sweep(tomllib.loads(block.text), name=str(block)).recipes
        return
    head = "" if block.text.startswith("format = ") else "format = 1\n"
    if head and "[model]" not in block.text:
        head += '[model]\nsource = "model.py"\nentry = "make_model"\n'
    if "[evaluate]" in block.text and "[inputs]" not in block.text:
        head += '[inputs]\ntracing = "tracing_inputs"\n'
    parse_recipe(head + block.text, name=str(block))


# --- commands, and Python that uses ACE Studio ---


class SharedExecutor(WorkerExecutor):
    """One engine process for all commands that ask for no containment."""

    client: WorkerClient

    def __init__(self, client: WorkerClient | None = None) -> None:
        self._own = client is not None
        super().__init__(client or self.client)

    def close(self) -> None:
        if self._own:
            super().close()


@pytest.fixture
def engine(monkeypatch, tmp_path) -> Iterator[None]:
    """An engine process without a compiler, for every command that asks for no containment."""
    # Without a compiler on the path the two targets are left out that take half a minute to build.
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CXX", "")
    monkeypatch.setenv("ACE_STUDIO_CACHE", str(tmp_path / "captures"))
    SharedExecutor.client = WorkerClient()
    monkeypatch.setattr(follow, "WorkerExecutor", SharedExecutor)
    yield
    SharedExecutor.client.close()


@pytest.fixture
def example(tmp_path, digits_folder, monkeypatch) -> Path:
    """A copy of the shipped example that takes seconds, which ``demo`` runs too; the current folder."""
    folder = tmp_path / "digits"
    shutil.copytree(digits_folder, folder)
    recipe = (folder / "recipe.toml").read_text(encoding="utf-8")
    for usual, light in LIGHT.items():
        assert usual in recipe
        recipe = recipe.replace(usual, light)
    (folder / "recipe.toml").write_text(recipe, encoding="utf-8")
    monkeypatch.setattr(commands, "example_recipe", lambda: folder / "recipe.toml")
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setitem(sys.modules, "model", None)  # what another test imported by this name comes back afterwards
    del sys.modules["model"]
    return folder


def names_of_the_readme() -> dict[str, object]:
    """What the README supposes: a model, two examples, calibration data and a measure."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    x4 = torch.randn(4, 8)

    def accuracy_of(predict: Callable[..., torch.Tensor]) -> float:
        return float((predict(x4).argmax(1) == model(x4).argmax(1)).float().mean())

    return {"model": model, "x1": x4[:1], "x4": x4, "batches": [(x4,), (x4 / 2,)], "accuracy_of": accuracy_of}


def run_block(block: Block, folder: Path, names: dict[str, object], done: set[str]) -> None:
    """Do what the block says; a command that ran already is not run again."""
    if name := block.said("file"):
        (folder / name).write_text(block.text, encoding="utf-8")
    elif block.language == "bash":
        for words in block.commands:
            line = shlex.join(words)
            assert line in done or run_command(words) == 0, f"{block}: {line}"
            done.add(line)
    elif block.language == "python":
        exec(compile(block.text, str(block), "exec"), names)


@pytest.mark.slow
@pytest.mark.usefixtures("forked_engines")
@pytest.mark.timeout(900)  # a minute alone; on two cores with other tests beside it several
def test_the_commands_and_the_python_of_every_page_run(engine, example, monkeypatch):
    quick = {"target": "onnxruntime", "default": "int8-dynamic", "rounds": 1, "profile": False}
    compile_model = ace_studio.compile
    monkeypatch.setattr(ace_studio, "compile", lambda model, **words: compile_model(model, **words | quick))
    names, done = names_of_the_readme(), set()
    for page in sorted(page_names(), key=lambda name: name != FIRST):
        for block in blocks_of(page):
            if page in DEPLOY and not (block.language == "bash" and block.commands):
                continue
            needed = block.said("needs")
            if not block.reason and (not needed or importlib.util.find_spec(needed)):
                run_block(block, example, names, done)
    sys.modules.pop("model", None)
    assert len(done) > 8
