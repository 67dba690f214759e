"""The measuring script: what it reads of the system, its lock, its cache, and its options."""

import ast
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ace_studio.jobs.devices import measure_there as there
from ace_studio.records import private_folder


@pytest.mark.parametrize("module", [there, private_folder])
def test_it_imports_the_standard_library_and_the_module_that_is_sent_with_it_only(module):
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        known = {*sys.stdlib_module_names, "platformdirs"}
        assert all(name.partition(".")[0] in known or name == private_folder.__name__ for name in names), names


def test_it_is_python_3_8():
    ast.parse(Path(there.__file__).read_text(encoding="utf-8"), feature_version=(3, 8))


def test_governor_frequency_and_temperature_come_from_the_system(tmp_path):
    for core, kilohertz in enumerate((1_800_000, 2_400_000)):
        folder = tmp_path / "sys/devices/system/cpu" / f"cpu{core}" / "cpufreq"
        folder.mkdir(parents=True)
        (folder / "scaling_governor").write_text("schedutil\n")
        (folder / "scaling_cur_freq").write_text(f"{kilohertz}\n")
    for zone, millidegrees in enumerate(("41000", "-5000", "nonsense", "53500")):
        folder = tmp_path / "sys/class/thermal" / f"thermal_zone{zone}"
        folder.mkdir(parents=True)
        (folder / "temp").write_text(millidegrees)
    assert there.state(str(tmp_path)) == {"governor": "schedutil", "frequency_mhz": 2100.0, "temperature_c": 53.5}


def test_a_system_that_says_nothing_gives_no_figures(tmp_path):
    assert there.state(str(tmp_path)) == {"governor": "", "frequency_mhz": None, "temperature_c": None}
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text("model name : X\ncpu MHz : 2000.0\n\ncpu MHz : 3000.0\n")
    assert there.state(str(tmp_path))["frequency_mhz"] == 2500.0


@pytest.mark.skipif(os.name != "posix", reason="flock is POSIX")
def test_one_measurement_at_a_time_and_the_one_that_waits_says_why(tmp_path):
    held = there.take_lock(tmp_path / "lock")
    assert held is not None
    words = "from ace_studio.jobs.devices import measure_there as m; from pathlib import Path; "
    program = f"{words}m.take_lock(Path({str(tmp_path / 'lock')!r})); m.say('got')"
    waiting = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    with waiting:
        assert waiting.stdout is not None
        first = waiting.stdout.readline()
        assert '"kind": "waiting"' in first and "another measurement runs on" in first
        os.close(held)
        assert '"kind": "got"' in waiting.stdout.readline()


def test_contents_are_asked_for_once_and_forgotten_after_a_week(cache, capfd):
    import hashlib

    sha256 = hashlib.sha256(b"abc").hexdigest()
    assert there.take_contents([sha256], io.BytesIO(b"3\nabc"))[sha256].read_bytes() == b"abc"
    there.take_contents([sha256], io.BytesIO())
    said = capfd.readouterr().out.splitlines()
    assert sha256 in said[0] and sha256 not in said[1]
    os.utime(cache / sha256, (0, 0))
    there.take_contents([], io.BytesIO())
    assert list(cache.iterdir()) == []


def test_a_content_that_arrives_otherwise_than_it_was_sent_is_refused(cache):
    with pytest.raises(there.NotDoneHere, match="did not arrive"):
        there.take_contents(["0" * 64], io.BytesIO(b"3\nabc"))
    assert list(cache.iterdir()) == []


def test_contents_are_never_kept_where_another_user_could_put_them(cache):
    cache.mkdir(parents=True)
    cache.chmod(0o777)
    with pytest.raises(PermissionError, match="other users may write"):
        there.take_contents([], io.BytesIO())


def test_inputs_get_the_memory_layout_that_the_graph_needs(tmp_path):
    numpy = pytest.importorskip("numpy")
    (tmp_path / "x").write_bytes(numpy.arange(6, dtype="float32").tobytes())
    given = {"sha256": "x", "dtype": "float32", "shape": [2, 3], "order": [1, 0]}
    (array,) = there.arrays([given], {"x": tmp_path / "x"})
    assert array.tolist() == [[0, 1, 2], [3, 4, 5]] and array.transpose().flags.c_contiguous


def test_all_calls_are_measured_in_the_same_rounds():
    seen = []
    calls = {at: (lambda at=at: seen.append(at)) for at in (0, 1)}
    samples = there.measure(calls, 6, 60.0)
    assert [len(wall) for wall, _ in samples.values()] == [6, 6] and set(seen) == {0, 1}
    few = there.measure(calls, 100, 0.0)
    assert [len(wall) for wall, _ in few.values()] == [there.LEAST_ROUNDS] * 2
