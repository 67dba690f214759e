"""Keys of stored work change with the code that did it, and with no other code."""

from pathlib import Path

import pytest

from ace_studio.engine import own_code as module


@pytest.fixture
def digests(tmp_path, monkeypatch):
    """Write one more line into a file of a small engine, and get the digests of all of it and of one folder."""
    monkeypatch.setattr(module, "__file__", str(tmp_path / "own_code.py"))

    def changed(file: str) -> tuple[str, str]:
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as stream:
            stream.write("x = 1\n")
        module.own_code.cache_clear()
        return module.own_code(), module.own_code("capture")

    yield changed
    module.own_code.cache_clear()


@pytest.mark.parametrize(
    ("file", "is_capture"), [("plan.py", True), ("capture/rungs/export.py", True), ("targets/base.py", False)]
)
def test_a_change_counts_where_its_file_is_asked_for(digests, file, is_capture):
    (Path(module.__file__).parent / "targets").mkdir()
    whole, capture = digests("capture/first.py")
    new_whole, new_capture = digests(file)
    assert new_whole != whole
    assert (new_capture != capture) is is_capture
