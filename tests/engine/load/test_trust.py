"""No code runs before its file is trusted."""

import contextlib
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from ace_studio.engine.load import inspect_file, load_model
from ace_studio.engine.load.trust import CodeToRun, require_trust
from ace_studio.engine.progress import Reporter
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.recipe import ModelChoice, Recipe
from tests.engine.load import samples


def test_no_payload_runs_without_trust(tmp_path):
    mark = tmp_path / "mark"
    torch.save(samples.Payload(mark), tmp_path / "a.pt")
    samples.write_bare_pickle(tmp_path / "b.pt", samples.Payload(mark))
    samples.write_pt2_with_payload(tmp_path / "c.pt2", mark)
    (tmp_path / "d.py").write_text(f"import os\nos.mkdir({str(mark)!r})\ndef make(): ...\n")
    for name in ("a.pt", "b.pt", "c.pt2", "d.py"):
        problem = samples.problem_of(tmp_path, name, trusted=False)
        assert problem.code is ErrorCode.UNTRUSTED
        assert "--trust" in problem.remedy
        assert "Trust" in problem.remedy
        assert problem.details == f"sha256:{inspect_file(tmp_path / name).sha256}"
    assert not mark.exists()


def test_the_payload_of_the_samples_does_run_once_trusted(tmp_path):
    """Else the test above proves nothing."""
    mark = tmp_path / "mark"
    torch.save(samples.Payload(mark), tmp_path / "a.pt")
    samples.problem_of(tmp_path, "a.pt")
    assert mark.exists()
    mark.rmdir()
    samples.write_pt2_with_payload(tmp_path / "c.pt2", mark)
    with contextlib.suppress(AceError):
        samples.load(tmp_path, "c.pt2")
    assert mark.exists()


def test_every_file_that_would_run_is_asked_for_before_any_runs(tmp_path):
    mark = tmp_path / "mark"
    samples.write_net(tmp_path, source=samples.NET_SOURCE + f"\nimport os\nos.mkdir({str(mark)!r})\n")
    (tmp_path / "eval.py").write_text("def score(predict): ...\n")
    source, other = (inspect_file(tmp_path / name).sha256 for name in ("net.py", "eval.py"))
    for trusted, untrusted in (({source}, ["eval.py"]), ({other}, ["net.py"]), (set(), ["net.py", "eval.py"])):
        with pytest.raises(AceError) as caught:
            samples.load(tmp_path, "net.py", evaluate="eval.py:score", trusted=trusted)
        assert [Path(problem.where).name for problem in caught.value.problems] == untrusted
        assert not mark.exists()
    samples.load(tmp_path, "net.py", evaluate="eval.py:score", trusted={source, other})
    assert mark.exists()


def test_data_beside_trusted_code_needs_no_trust_of_its_own(tmp_path):
    samples.write_net(tmp_path)
    save_file(samples.Plain().state_dict(), tmp_path / "w.safetensors")
    asked = []
    recipe = Recipe(model=ModelChoice(source="w.safetensors", entry="net.py:Net"))
    load_model(recipe, tmp_path, is_trusted=lambda sha: asked.append(sha) or True, reporter=Reporter())
    assert asked == [inspect_file(tmp_path / "net.py").sha256]


def test_every_file_without_trust_is_a_problem_with_its_hash():
    files = [CodeToRun(Path(f"{name}.py"), name * 3, (f"{name}.py from top to bottom",)) for name in "abc"]
    require_trust(files, lambda sha256: True)
    with pytest.raises(AceError) as caught:
        require_trust(files, lambda sha256: sha256 == "bbb")
    assert [problem.details for problem in caught.value.problems] == ["sha256:aaa", "sha256:ccc"]
    assert "a.py from top to bottom" in caught.value.problem.why
