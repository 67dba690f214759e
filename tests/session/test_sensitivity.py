"""What is known about the sensitivity of ops."""

from msgspec.structs import replace

from ace_studio.records.messages import SensitivityFound
from ace_studio.records.results import OpSensitivity
from ace_studio.session.document import Document
from ace_studio.session.sensitivity import known_sensitivity, sensitivity_by_op
from tests.session.fake_engine_link import result

ONE = OpSensitivity(id="a", precision="bf16", sqnr_db=40.0)
LOW = OpSensitivity(id="a", precision="int8-static", sqnr_db=20.0)


def test_a_scan_wins_over_the_last_run():
    run = replace(result(), sensitivity=(LOW,))
    scan = SensitivityFound(job="j", fingerprint="f", ops=(ONE,), samples_done=1, samples=2, forwards=3.0)
    assert known_sensitivity(Document(result=run)) == (LOW,)
    assert known_sensitivity(Document(result=run, sensitivity=scan)) == (ONE,)
    assert known_sensitivity(Document()) == ()


def test_without_a_precision_the_worst_one_counts():
    assert sensitivity_by_op((ONE, LOW)) == sensitivity_by_op((LOW, ONE)) == {"a": 20.0}
    assert sensitivity_by_op((ONE, LOW), "bf16") == {"a": 40.0}
