"""Whoever asked for a job is mailed once, at its first failure, and told no secret."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.core import mail
from django.utils import timezone

from reliability.alerts import notices, tell_askers
from reliability.alerts.deliver import send
from reliability.alerts.notices import compose
from reliability.claim.enqueue import Accepted, enqueue
from reliability.conf import conf
from reliability.handlers import Event
from reliability.models import Job, Notice
from reliability.policy import Backoff, RunOnce
from reliability.sweep import sweep
from reliability.work.drain import drain
from reliability.work.lease import take
from reliability.work.settle import intend
from tests.database import world

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)
ANN = "ann@example.org"


def fail(event: Event) -> None:
    raise ValueError("card 4242 was declined")


@pytest.fixture(autouse=True)
def kinds() -> Iterator[None]:
    twice = Backoff(first=HOUR, cap=HOUR, attempts=2)
    with (
        world.local("invoice.pdf", fail, policy=twice),
        world.kind("transfer", fail, policy=RunOnce()),
        world.local("fine", lambda event: None),
    ):
        yield


def asked(kind: str, *, by: str = ANN) -> Job:
    taken = enqueue(kind, key="secret-key", tenant=world.tenant(), asked_by=by)
    assert isinstance(taken, Accepted)
    return Job.objects.get(public_id=taken.job_id)


def test_the_first_failure_is_mailed_to_the_person_who_asked_and_only_the_first() -> None:
    job = asked("invoice.pdf")
    drain("local")
    assert tell_askers() == 1
    world.make_due(job)
    drain("local")
    assert tell_askers() == 0
    [sent] = mail.outbox
    assert sent.to == [ANN]
    assert sent.subject == "[Reliability] invoice.pdf failed"
    assert f"/trace/?find={job.public_id}" in sent.body
    assert "ValueError" in sent.body
    assert "tried again, not before" in sent.body


def test_the_mail_holds_neither_key_nor_message_nor_payload() -> None:
    asked("transfer")
    world.work_outside()
    tell_askers()
    [sent] = mail.outbox
    assert "a dead letter: a person decides" in sent.body
    assert "secret-key" not in sent.body
    assert "4242" not in sent.body


def test_a_run_once_job_whose_worker_was_lost_is_told_too() -> None:
    job = asked("transfer")
    [lease] = take("outside", limit=1)
    intend(lease)
    world.end_lease(job)
    sweep("command")
    assert tell_askers() == 1
    assert "WorkerLost" not in mail.outbox[0].subject


def test_a_job_that_is_fine_or_was_asked_by_no_address_owes_no_mail() -> None:
    asked("fine")
    asked("invoice.pdf", by="cron")
    asked("transfer", by="")
    drain("local")
    world.work_outside()
    assert Notice.objects.count() == 0
    assert tell_askers() == 0


def test_a_release_is_no_failure() -> None:
    job = asked("invoice.pdf")
    Job.objects.filter(pk=job.pk).update(kind="nobody's")
    drain("local")
    job.refresh_from_db()
    assert (job.held, Notice.objects.count()) == ("kind unknown", 0)


def test_a_mail_that_cannot_be_sent_is_tried_later_and_given_up_after_ten_tries(
    settings: Any,
) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 9
    asked("transfer")
    world.work_outside()
    now = timezone.now()
    for n in range(12):
        with time_machine.travel(now + n * 2 * HOUR, tick=False):
            assert tell_askers() == 0
    notice = Notice.objects.get()
    assert (notice.tries, notice.sent_at) == (conf().notice_tries_max, None)
    assert notice.error.startswith("ConnectionRefusedError")


def test_a_sender_that_died_leaves_the_notice_due_again_under_the_same_id(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def sent_then_died(notice: Notice) -> int:
        send(compose(notice))
        return 0

    asked("transfer")
    world.work_outside()
    monkeypatch.setattr(notices, "_tell", sent_then_died)
    tell_askers()
    monkeypatch.undo()
    assert tell_askers() == 0
    with time_machine.travel(timezone.now() + conf().mail_lease, tick=False):
        assert tell_askers() == 1
    first, second = mail.outbox
    assert first.extra_headers["Message-ID"] == second.extra_headers["Message-ID"]
