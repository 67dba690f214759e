import pytest

from ace_studio.records import processor
from ace_studio.records.processor import int8_weight_bits


@pytest.mark.parametrize(
    ("machine", "flags", "most", "bits"),
    [
        ("x86_64", {"avx2"}, "", 7),
        ("x86_64", {"avx512_vnni"}, "", 8),
        ("x86_64", {"avx512_vnni"}, "AVX512_CORE", 7),
        ("x86_64", {"avx512_vnni"}, "avx2", 7),
        ("x86_64", {"avx512_vnni"}, "AVX512_CORE_BF16", 8),
        ("AMD64", {"avx2", "avx_vnni"}, "", 8),
        ("aarch64", set(), "AVX2", 8),
    ],
)
def test_weights_lose_one_bit_only_on_x86_without_vnni(monkeypatch, machine, flags, most, bits):
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", most)
    monkeypatch.setattr(processor.platform, "machine", lambda: machine)
    monkeypatch.setattr(processor, "cpu_flags", lambda: frozenset(flags))
    assert int8_weight_bits() == bits
