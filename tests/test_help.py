"""The help pages stay true: they name every key, word, precision and target that exists, and none that does not."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import typer.main

from ace_studio.cli.app import app
from ace_studio.engine.load.kinds import LOADERS
from ace_studio.records import advice, fixes, results, tensors
from ace_studio.records.errors import ErrorCode, ExitCode
from ace_studio.records.recipes import recipe
from ace_studio.records.recipes.plan import MATCH_KINDS, PlanRule, Precision
from ace_studio.records.results import finetuning, pruning
from ace_studio.records.targets import TARGET_ROWS

INTERNAL_KEYS = {"plan": {"from_goal"}}
"""Fields of the recipe's record that its file never holds."""


@pytest.fixture(scope="module")
def help_folder(root) -> Path:
    return root / "resources" / "help"


@pytest.fixture(scope="module")
def pages(help_folder) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(help_folder.glob("*.md"))}


def section(page: str, title: str) -> str:
    """The text under ``## title`` up to the next one."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", page, flags=re.MULTILINE | re.DOTALL)
    assert found is not None, f"there is no section {title}"
    return found.group(1)


def first_cells(text: str) -> set[str]:
    """The code words that the rows of the tables in a text start with."""
    return set(re.findall(r"^\| `([^`]+)`", text, flags=re.MULTILINE))


def keys_of(record: type[msgspec.Struct]) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(record)}


def words_in(text: str) -> set[str]:
    return set(re.findall(r"`([^`\n]+)`", text))


def test_every_section_of_the_recipe_lists_exactly_its_keys(pages):
    for field in msgspec.structs.fields(recipe.Recipe):
        if field.name == "format":
            continue
        listed = first_cells(section(pages["recipe.md"], f"[{field.encode_name}]"))
        assert listed == keys_of(field.type) - INTERNAL_KEYS.get(field.name, set()), field.name


def test_the_keys_inside_rows_controls_and_rules_are_named(pages):
    for record in (tensors.TensorSpec, recipe.CaptureControl, PlanRule):
        for key in keys_of(record):
            assert re.search(rf"\b{key}\b", pages["recipe.md"]), key


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("plan.md", set(Precision)),
        ("plan.md", {f"{kind}:" for kind in MATCH_KINDS}),
        ("targets.md", set(TARGET_ROWS)),
        (
            "shapes.md",
            set(tensors.DimChoice) | set(tensors.DimVerdict) | set(tensors.ValueSource) - {tensors.ValueSource.FILE},
        ),
        ("shapes.md", set(recipe.ALL_CAPTURE_METHODS)),
        ("recipe.md", set(recipe.ControlKind) | set(recipe.Objective) | set(recipe.ALL_CAPTURE_METHODS)),
        ("goals.md", keys_of(recipe.Goal) | set(recipe.Objective)),
        ("loading-and-trust.md", set(LOADERS)),
        ("will-not-trace.md", set(fixes.FixKind) | set(fixes.FixStatus)),
        ("result.md", set(results.ResultStatus) | set(results.RunStatus)),
    ],
)
def test_a_page_names_every_word_there_is(pages, page, words):
    assert {str(word) for word in words} - words_in(pages[page]) == set()


@pytest.mark.parametrize(("page", "words"), [("plan.md", set(Precision)), ("targets.md", set(TARGET_ROWS))])
def test_a_table_has_no_row_for_something_that_does_not_exist(pages, page, words):
    rows = first_cells(pages[page]) - {f"{kind}:" for kind in MATCH_KINDS}
    assert rows == {str(word) for word in words}


@pytest.mark.parametrize(
    ("title", "record"),
    [
        ("The whole", results.Result),
        ("capture", results.CaptureReport),
        ("baseline", results.Baseline),
        ("runs", results.TargetRun),
        ("pruning", pruning.PruningReport),
        ("finetune", finetuning.FinetuneReport),
        ("advice", advice.Advice),
        ("advice_from", advice.AdviceOutcome),
    ],
)
def test_every_part_of_the_result_lists_exactly_its_keys(pages, title, record):
    assert first_cells(section(pages["result.md"], title)) == keys_of(record)


@pytest.mark.parametrize(
    "record", [results.GraphBreak, results.CaptureAttempt, results.Latency, results.OpReport, tensors.DimFinding]
)
def test_the_inner_keys_of_the_result_are_named(pages, record):
    assert keys_of(record) - words_in(pages["result.md"]) == set()


def test_every_command_and_option_is_listed_and_no_other_command(pages):
    command = typer.main.get_command(app)
    page = pages["command-line.md"]
    words = re.findall(r"^\| `ace-studio ?(\w*)", page, flags=re.MULTILINE)
    assert {word for word in words if word} == set(command.commands)
    options = {
        option
        for sub_command in command.commands.values()
        for parameter in sub_command.params
        for option in parameter.opts
        if option.startswith("--")
    }
    assert options - words_in(page) - {"--help"} == set()


def test_every_exit_code_and_error_code_is_explained(pages):
    codes = re.findall(r"^\| (\d+) \|", pages["command-line.md"], flags=re.MULTILINE)
    assert set(codes) == {str(int(code)) for code in ExitCode}
    assert first_cells(section(pages["messages.md"], "Errors")) == {str(code) for code in ErrorCode}


def codes_of_warnings(root: Path) -> Iterator[str]:
    """The codes in calls of ``Reporter.warn`` and ``Warning`` in the sources: words, or constants of the module."""
    for path in (root / "ace_studio").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        constants = {
            one.targets[0].id: one.value
            for one in tree.body
            if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name)
        }
        for call in ast.walk(tree):
            if not isinstance(call, ast.Call):
                continue
            named = [keyword.value for keyword in call.keywords if keyword.arg == "code"]
            name = getattr(call.func, "attr", getattr(call.func, "id", ""))
            given = {"warn": call.args[:1], "Warning": named}.get(name, [])
            for code in given:
                found = constants.get(code.id) if isinstance(code, ast.Name) else code
                if isinstance(found, ast.Constant):
                    yield str(found.value)


def test_every_code_of_a_warning_is_explained_and_no_other(pages, root):
    codes = set(codes_of_warnings(root))
    assert len(codes) > 40
    assert first_cells(section(pages["messages.md"], "Warnings")) == codes


def test_every_code_has_a_meaning_and_a_remedy(pages):
    rows = re.findall(r"^\| `[^`]+` \|.*$", pages["messages.md"], flags=re.MULTILINE)
    assert [row for row in rows if min(map(len, map(str.strip, row.strip("|").split("|")))) < 4] == []


def test_every_link_between_pages_leads_somewhere(pages, help_folder):
    for name, text in pages.items():
        for target in re.findall(r"\]\(([^)#:]+)\)", text):
            assert (help_folder / target).is_file(), f"{name} links to {target}"


def test_every_page_is_reachable_from_the_index(pages):
    linked = set(re.findall(r"\]\(([^)#:]+)\)", pages["index.md"]))
    assert linked == set(pages) - {"index.md"}


def test_pages_are_short_and_begin_with_a_title(pages):
    for name, text in pages.items():
        assert text.startswith("# "), name
        has_every_key = name in {"recipe.md", "result.md"}
        assert len(text.splitlines()) < (300 if has_every_key else 200), name
        assert max(map(len, text.splitlines())) <= 160, name


@pytest.mark.parametrize(
    "name",
    [
        "README.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "ace_studio/ARCHITECTURE.md",
        "ace_studio/DECISIONS.md",
    ],
)
def test_links_of_the_front_pages_lead_somewhere(root, name):
    text = (root / name).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert ((root / name).parent / target).exists(), target


def test_the_guide_for_contributors_points_to_places_that_exist(root):
    text = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
    places = set(re.findall(r"`((?:ace_studio|tests|packaging|resources)/[\w./]+)`", text))
    places -= {place for place in places if "NAME" in place or "/a/" in place}
    assert len(places) > 40
    assert sorted(place for place in places if not (root / place).exists()) == []


def test_the_readme_and_the_page_of_the_example_state_the_same_accuracy(root):
    page = (root / "resources/examples/digits/README.md").read_text(encoding="utf-8")
    accuracy = re.search(r"\| ([\d.]+) on 599 pictures", page)
    assert accuracy is not None
    assert f"accuracy of {accuracy.group(1)} on 599 held-out" in (root / "README.md").read_text(encoding="utf-8")
