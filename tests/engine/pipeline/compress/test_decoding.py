"""A decoder step on a target: captured with a free cache length, quantized weights, really decoding."""

import pytest
import torch

import ace_studio
from ace_studio.engine.targets.torch.eager import EagerTarget
from ace_studio.records.errors import AceError, ExitCode
from ace_studio.records.results import RunStatus
from tests.step_models import step_decoder

torch.set_num_threads(1)
DECODE = {"token": "token", "logits": "0", "feed": {"cache": "1"}, "position": "position", "tokens": 12}


@pytest.mark.parametrize(
    ("precision", "target"),
    [("int8-weight", "onnxruntime"), pytest.param("int4-weight", "openvino", marks=pytest.mark.slow)],
)
def test_a_step_decodes_with_quantized_weights(precision: str, target: str) -> None:
    pytest.importorskip(target)
    module, examples = step_decoder(width=32, lengths=(2, 5))
    texts = [(torch.randint(0, 61, (1, 6), generator=torch.Generator().manual_seed(seed)),) for seed in range(3)]
    report = ace_studio.compile(
        module,
        tracing_inputs=examples,
        target=target,
        default=precision,
        metric="perplexity",
        evaluation_data=texts,
        decode=DECODE,
        rounds=2,
    ).report
    base, (run,) = report.baseline, report.runs
    assert run.status is RunStatus.OK, run.error
    assert base.decode.tokens == run.decode.tokens == 12
    assert base.decode.same_tokens == 1.0
    assert run.tokens_per_s == run.decode.tokens_per_s > 0
    assert precision in {op.actual for op in run.ops}
    assert base.samples == 3
    assert run.metric == pytest.approx(base.metric, rel=0.2)
    assert report.baseline.profile.timed_ops > 20
    assert run.profile.timed_ops > 5


def test_what_the_recipe_names_must_be_there_before_anything_is_built(monkeypatch) -> None:
    monkeypatch.setattr(EagerTarget, "build", lambda *_: pytest.fail("it was built"))
    module, examples = step_decoder(width=32, layers=1, lengths=(2, 3))
    with pytest.raises(AceError) as caught:
        ace_studio.compile(
            module,
            tracing_inputs=examples,
            target="eager",
            default="fp32",
            decode={**DECODE, "feed": {"past": "1"}},
            rounds=1,
        )
    assert "no input 'past'" in caught.value.problem.what
    assert caught.value.problem.exit_code is ExitCode.USAGE
