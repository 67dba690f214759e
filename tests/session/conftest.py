"""A session with an engine that says what the test tells it to."""

from pathlib import Path

import pytest

from ace_studio.records.messages import JobFinished, ModelCaptured
from ace_studio.session.kept.folders import UserFolders
from ace_studio.session.session import Session
from tests.gui.graph_tables import partial_capture
from tests.session.fake_engine_link import READY, FakeEngineLink, inspected


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        self.now_s += 10.0  # no two gestures are close enough to be merged
        return self.now_s


@pytest.fixture
def engine() -> FakeEngineLink:
    return FakeEngineLink()


@pytest.fixture
def session(engine: FakeEngineLink, tmp_path: Path) -> Session:
    return Session(engine, folders=UserFolders.inside(tmp_path / "user"), clock=Clock())


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    file = folder / "model.py"
    file.write_text("def make_model(): ...\n")
    return file


@pytest.fixture
def opened(session: Session, engine: FakeEngineLink, model: Path) -> Session:
    """A session with an open, trusted model and a ready engine."""
    session.apply(READY)
    session.files.open_path(model)
    session.apply(inspected(engine.job, "make_model", path=str(model)))
    session.trust.trust_file()
    return session


@pytest.fixture
def partial(opened, engine):
    """A session with a capture in four subgraphs; the breaks between the first and the last two are one line."""
    table, capture = partial_capture(4, lines=(10, 20, 10))
    opened.jobs.trace()
    text = {"/models/net.py": "x\n" * 40}
    opened.apply(ModelCaptured(job=engine.job, fingerprint="f", capture=capture, graph=table, sources=text))
    opened.apply(JobFinished(job=engine.job))
    return opened
