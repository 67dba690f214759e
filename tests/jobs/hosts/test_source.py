"""What is sent as the engine: all that it imports, and nothing of the window."""

import io
import subprocess
import sys
import tarfile
from hashlib import sha256

from ace_studio.jobs.hosts.source import engine_source


def test_the_archive_is_the_same_for_the_same_content_and_holds_no_window():
    first = engine_source()
    engine_source.cache_clear()
    assert engine_source() == first and sha256(first.archive).hexdigest() == first.sha256
    with tarfile.open(fileobj=io.BytesIO(first.archive)) as archive:
        names = archive.getnames()
    assert {"ace_studio/__init__.py", "ace_studio/jobs/boot.py", "ace_studio/resources/report.css"} <= set(names)
    assert not [name for name in names if name.startswith(("ace_studio/gui", "ace_studio/cli", "ace_studio/session"))]


def test_the_keeper_and_the_handlers_of_the_engine_are_found_in_it(tmp_path):
    """Without this checkout on the path; torch is not imported, which would take seconds."""
    with tarfile.open(fileobj=io.BytesIO(engine_source().archive)) as archive:
        archive.extractall(tmp_path, filter="data")
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import ace_studio.jobs.hosts.keeper, ace_studio.jobs.worker\n"
        "import ace_studio.records.report_page as page; from ace_studio.records.places import resource_folder\n"
        "assert page.__file__.startswith(sys.argv[1]) and (resource_folder() / 'report.css').is_file()"
    )
    subprocess.run([sys.executable, "-P", "-c", program, str(tmp_path)], check=True, cwd=tmp_path, env={})
