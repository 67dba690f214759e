import pytest

from ace_studio.engine.targets.torch import eager


@pytest.fixture(autouse=True)
def bf16_in_eager_on_any_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """The jobs of these tests take bf16 in eager as a second precision that builds at once; torch emulates it."""
    monkeypatch.setattr(eager, "half_precision_problem", lambda _: "")
