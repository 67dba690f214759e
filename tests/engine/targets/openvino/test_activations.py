import pytest

from ace_studio.engine.targets.openvino.activations import quantizes_activations
from ace_studio.records.processor import cpu_flags

pytest.importorskip("openvino")


@pytest.mark.skipif("avx2" not in cpu_flags(), reason="names instructions of x86")
def test_the_probe_sees_whether_the_processor_has_the_instructions():
    assert quantizes_activations() is bool(cpu_flags() & {"avx512_vnni", "avx_vnni"})
