"""Every model that misbehaves ends as the manifest says: in words about what its code did, where, and what to do."""

import pytest

from tests.corpus.case import FOLDER, Case, cases, run, write

THEMES = sorted(path.stem for path in FOLDER.glob("*.toml"))
WITNESS = Case(
    name="witness",
    source="""
import gc, random, sys
assert torch.get_default_dtype() == torch.float32
assert torch.get_num_threads() == 1
assert torch.is_grad_enabled()
assert not torch.are_deterministic_algorithms_enabled()
assert torch.backends.mkldnn.enabled and torch.get_float32_matmul_precision() == "highest"
assert not torch.is_anomaly_enabled()
assert torch.empty(1).device.type == "cpu"
assert torch.tensor(1e-40) * 1 > 0
assert torch.rand is not None and random.random() != random.random()
assert nn.Linear.forward.__module__.startswith("torch")
assert gc.isenabled() and sys.stderr is not None
print("written to stdout", flush=True)
""",
)
"""A model that raises if an earlier one changed the process that it runs in."""


def _parameters():
    for theme in THEMES:
        for case in cases(theme):
            marks = [pytest.mark.slow] if case.slow or case.kills else []
            yield pytest.param(case, id=case.name, marks=marks)


@pytest.mark.parametrize("case", list(_parameters()))
def test_a_misbehaving_model_ends_as_expected(case, executor, tmp_path):
    write(case, tmp_path)
    outcome = run(case, tmp_path, executor)
    assert outcome.code == case.code, outcome.text
    assert (int(outcome.problems[0].exit_code) if outcome.problems else 0) == case.exit
    assert "did not expect" not in outcome.text
    assert len(outcome.text) < 10_000
    for words in case.words:
        assert words in outcome.text
    for problem in outcome.problems:
        assert problem.what and problem.remedy
    if case.code and case.line():
        assert any(problem.where.endswith(f"model.py:{case.line()}") for problem in outcome.problems), outcome.text
    assert set(case.warns) <= set(outcome.warnings)
    if case.spoils:
        (tmp_path / "next").mkdir()
        write(WITNESS, tmp_path / "next")
        after = run(WITNESS, tmp_path / "next", executor)
        assert after.code == "", after.text
        assert any("written to stdout" in line for line in after.log)


def test_every_case_has_a_name_of_its_own():
    names = [case.name for theme in THEMES for case in cases(theme)]
    assert len(names) >= 80
    assert len(set(names)) == len(names)
