"""What the story's handlers ask for is the same whichever event tells of it, and is counted."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import date
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings

from reliability import handlers as registry
from reliability.errors import PermanentError
from reliability.handlers import DownstreamKey, Event
from reliability.models import DeadLetter, Job, ProcessedKey
from reliability.proof.cast import KINDS, OUTAGE_PATH, Fate, StoryEvent
from reliability.proof.mails import FOLLOW_UP, message_id
from reliability.proof.settle import Settled, settle
from reliability.proof.sink_process import Sink
from reliability.proof.story import Story, Troubles
from reliability.sweep import sweep
from reliability.work.lease import take
from reliability.work.settle import intend
from tests.database import world

TROUBLES = Troubles(failing_charges=1, express_orders=1)
STORY = Story(seed=7, events=14, day=date(2026, 11, 29), troubles=TROUBLES)
MAIL = "generic-hmac.receipt.due"


@pytest.fixture(scope="module")
def sink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sink]:
    made = Sink(tmp_path_factory.mktemp("sink"))
    yield made
    made.stop()


@pytest.fixture
def work(sink: Sink, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Register the story's handlers for one test, pointed at the sink."""
    for name, value in sink.environment.items():
        monkeypatch.setenv(name, value)
    module = importlib.import_module("reliability.proof.handlers")
    port = int(sink.environment["EMAIL_URL"].rpartition(":")[2])
    backend = "django.core.mail.backends.smtp.EmailBackend"
    with override_settings(EMAIL_BACKEND=backend, EMAIL_HOST="127.0.0.1", EMAIL_PORT=port):
        yield module
    module.provider_line.hang_up()
    for kind in (*KINDS, FOLLOW_UP, module.UNTIL):
        registry.unregister(kind)
    del sys.modules["reliability.proof.handlers"]


def event(told: StoryEvent, *, key: str = "down-1") -> Event:
    return Event(
        tenant="acme",
        source=told.source,
        key=told.key,
        kind=told.kind,
        body=told.body,
        downstream_key=DownstreamKey(key),
    )


def of(kind: str) -> StoryEvent:
    return next(told for told in STORY.plan if told.kind == kind and told.fate is Fate.DONE)


def test_two_events_of_one_operation_ask_for_the_same(work: Any) -> None:
    by_operation: dict[object, list[dict[str, Any]]] = {}
    for told in STORY.plan:
        if told.operation and told.kind != MAIL:
            by_operation.setdefault(told.work, []).append(work.parameters(event(told)))
    several = [asked for asked in by_operation.values() if len(asked) > 1]
    assert len(several) == 2
    assert all(asked[0] == asked[1] for asked in several)


def test_the_provider_takes_one_key_once_and_no_other_parameters_under_it(
    work: Any, sink: Sink
) -> None:
    told, other = of("stripe.charge.succeeded"), of("standard-webhooks.order.paid")
    before = sink.counts()["effects"]
    first = work.ask_provider("/v1/credits", event(told, key="one-key"))
    assert work.ask_provider("/v1/credits", event(told, key="one-key")) == first
    assert sink.counts()["effects"] == before + 1
    assert sink.effects_under("one-key") == 1
    with pytest.raises(PermanentError, match="refused with 400"):
        work.ask_provider("/v1/credits", event(other, key="one-key"))


def test_a_sink_started_again_in_its_folder_counts_from_nothing(tmp_path: Path) -> None:
    for _ in range(2):
        sink = Sink(tmp_path)
        assert (sink.counts()["requests"], sink.mails()) == (0, [])
        with closing(HTTPConnection(sink.url.removeprefix("http://"))) as line:
            line.request("POST", "/v1/credits", "a=1", {"Idempotency-Key": "k"})
            assert line.getresponse().status == 200
        assert sink.counts()["effects"] == 1
        sink.stop()


def test_the_frozen_customer_and_the_outage_fail_before_any_effect(
    work: Any, sink: Sink
) -> None:
    frozen, courier = (
        next(told for told in STORY.plan if told.fate is fate)
        for fate in (Fate.FAILS, Fate.OUTAGE)
    )
    before = sink.counts()["effects"]
    sink.control(outage=True, outage_paths=[OUTAGE_PATH])
    with pytest.raises(work.CustomerFrozen):
        work.ask_provider("/v1/credits", event(frozen))
    with pytest.raises(work.provider_line.ProviderUnavailable):
        work.ask_provider(OUTAGE_PATH, event(courier))
    sink.control(outage=False)
    assert sink.counts()["effects"] == before


@pytest.mark.django_db
@pytest.mark.parametrize("mailed", [True, False])
def test_an_unknown_mail_is_resolved_where_the_sink_has_it_and_requeued_where_not(
    work: Any, sink: Sink, *, mailed: bool
) -> None:
    note = {"subject": "s", "words": "w", "to": "a@example.com"}
    job = world.job(FOLLOW_UP, key=f"note {mailed}", payload=note)
    [leased] = take("outside", limit=1)
    assert intend(leased)
    key = DownstreamKey(ProcessedKey.objects.get(job=job).downstream_key)
    if mailed:
        work.send(Event(tenant="acme", source="own", key="k", kind=FOLLOW_UP, body=b"",
                        downstream_key=key), "s", "w", to="a@example.com")  # fmt: skip
        assert message_id(key) in {mail["message_id"] for mail in sink.mails()}
    world.end_lease(job)
    sweep("command")
    assert DeadLetter.objects.open().get().outcome == "unknown"

    settled = settle(sink, seconds=0)

    state = Job.objects.get(pk=job.pk).state
    if mailed:
        assert (settled, state) == (Settled(resolved=1), "resolved")
    else:
        assert (settled, state) == (Settled(left=1, requeued=1), "ready")


@pytest.mark.django_db
def test_a_local_event_owes_one_mail_in_its_own_transaction(work: Any) -> None:
    told = of("stripe.customer.updated")
    world.tenant()
    work.owe_follow_up(event(told))
    work.owe_follow_up(event(told))
    job = Job.objects.get(kind=FOLLOW_UP)
    assert job.key.key == f'["{told.key}","mail"]'
