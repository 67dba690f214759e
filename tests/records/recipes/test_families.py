"""Which family a captured graph belongs to, and the ready recipe of each."""

import warnings
from pathlib import Path

import pytest
import torch
from msgspec.structs import replace

from ace_studio.engine.graph_table import build_graph_table
from ace_studio.engine.torch_private.exporting import export_program
from ace_studio.records.places import resource_folder
from ace_studio.records.recipes.families import FAMILIES, family_of_graph
from ace_studio.records.recipes.file import parse_recipe
from tests import family_models, tiny_models

NAMES = [family.name for family in FAMILIES]


def graph_of(module, example):
    with warnings.catch_warnings(action="ignore"):  # torch's LSTM sets its list of weights anew
        program = torch.export.export(module, example, strict=False)
    return build_graph_table(program, module=module)


@pytest.mark.parametrize("name", NAMES)
def test_a_model_is_recognised_as_of_its_family(name):
    module, examples = getattr(family_models, name.replace("-", "_"))()
    found = family_of_graph(graph_of(module, examples[0]))
    assert found is not None
    assert found.name == name


def test_a_model_of_no_family_is_none():
    module, examples = family_models.perceptron()
    assert family_of_graph(graph_of(module, examples[0])) is None
    tiny = tiny_models.many_outputs()
    program = torch.export.export(tiny.module, (), tiny.examples[0], strict=False)
    assert family_of_graph(build_graph_table(program, module=tiny.module)) is None


class TwoBags(torch.nn.Module):
    """A recommender of tables alone."""

    def __init__(self):
        super().__init__()
        self.tables = torch.nn.ModuleList(torch.nn.EmbeddingBag(20, 8, mode="sum") for _ in range(2))
        self.top = torch.nn.Linear(16, 1)

    def forward(self, ids):
        return self.top(torch.cat([table(ids) for table in self.tables], dim=1))


@pytest.mark.parametrize("traces_as", [torch.export.export, lambda *args, **more: export_bags(*args)])
def test_tables_in_bags_are_a_recommender_however_they_are_traced(traces_as):
    module, ids = TwoBags().eval(), torch.randint(0, 20, (4, 3))
    program = traces_as(module, (ids,), strict=False)
    assert family_of_graph(build_graph_table(program, module=module)).name == "recommender"


def export_bags(module, args):
    with torch.no_grad():
        return export_program(module, args, {}, dynamic_shapes=None, strict=False)


class CausalMask(family_models.TextEncoder):
    """Writes its mask as Hugging Face does: places compared with places."""

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1])
        mask = places[None, :] <= places[:, None]
        x = self.table(tokens)[:, None]
        return torch.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=mask)


class Upscaler(torch.nn.Module):
    """Three channels in, six out, twice as wide."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.ConvTranspose2d(3, 6, 2, 2)

    def forward(self, x):
        return self.conv(x)


def test_a_decoder_that_reads_its_whole_text_and_an_upscaler_are_of_no_family():
    assert family_of_graph(graph_of(CausalMask(), (torch.ones(1, 7, dtype=torch.int64),))) is None
    assert family_of_graph(graph_of(Upscaler(), (torch.ones(1, 3, 8, 8),))) is None


def test_an_attention_that_hides_the_tokens_that_follow_is_no_encoder():
    module, examples = family_models.text_encoder()
    graph = graph_of(module, examples[0])
    causal = tuple("is_causal = True" if "attention" in op else "" for op in graph.op)
    assert family_of_graph(replace(graph, attributes=causal)) is None


def test_a_graph_without_rows_is_none():
    module, examples = family_models.perceptron()
    graph = graph_of(module, examples[0])
    empty = {name: () for name in graph.__struct_fields__ if name != "name"}
    assert family_of_graph(replace(graph, **empty)) is None


def test_every_shipped_recipe_belongs_to_a_family():
    assert sorted(path.stem for path in (resource_folder() / "recipes").iterdir()) == sorted(NAMES)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_ready_recipe_is_valid_and_says_why_it_chose_so(family):
    text = family.recipe_text()
    recipe = parse_recipe(text, name=family.name)
    assert recipe.goal.max_drop
    assert Path(recipe.model.source).suffix == ".py"
    reason = text.partition("\n[plan]\n" if "\n[plan]" in text else "# No [plan]")[2]
    assert reason.startswith("# ") != recipe.plan.from_goal
    assert reason.startswith(": ") == recipe.plan.from_goal
    assert all(len(line) <= 120 for line in text.splitlines())
