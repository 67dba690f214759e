"""The document and its parts."""

from ace_studio.records.messages import JobFinished
from ace_studio.records.recipes.plan import Precision
from ace_studio.session.document import PART_OF_FIELD, Document
from ace_studio.session.session import Session
from tests.session.fake_engine_link import FakeEngineLink, captured


def test_a_plan_does_not_make_the_capture_stale(opened: Session, engine: FakeEngineLink) -> None:
    opened.jobs.trace()
    opened.apply(captured(engine.job, "a"))
    opened.apply(JobFinished(job=engine.job))
    opened.plan.set_default_precision(Precision.BF16)
    assert not opened.document.is_capture_stale


def test_every_field_of_the_document_belongs_to_a_part() -> None:
    assert set(Document.__struct_fields__) == set(PART_OF_FIELD)
