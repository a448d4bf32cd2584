"""A paused kind waits, held, and goes on where it was; nothing is lost and nothing is spent."""

import json
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.utils import timezone

from reliability.handlers import Event
from reliability.models import AuditEntry, Destination, Job, KindPause, Source
from reliability.policy import Backoff
from reliability.sweep import sweep
from reliability.work import holds
from reliability.work.dead_letters import Act
from reliability.work.drain import drain
from reliability.work.holds import pause, pause_destination, unpause, unpause_destination
from reliability.work.lease import take
from tests.database import world

pytestmark = pytest.mark.django_db


def effect(event: Event) -> None:
    Group.objects.create(name=f"{event.tenant} {event.key}")


@pytest.fixture(autouse=True)
def kinds() -> Iterator[None]:
    holds._known.until = 0.0
    with world.local("mail", effect), world.local("book", effect):
        yield
    holds._known.until = 0.0


def act(tenant: str = "acme") -> Act:
    return Act(world.tenant(tenant), "ann", reason="the provider is down")


def held() -> dict[str, str]:
    return dict(Job.objects.values_list("key__key", "held"))


def test_a_paused_kind_does_not_start_and_others_do() -> None:
    world.job("mail", "m")
    world.job("book", "b")
    assert pause("mail", act()) == 1
    assert drain("local") == 1
    assert held() == {"m": "paused", "b": ""}
    assert Job.objects.get(kind="mail").starts == 0


def test_what_comes_while_a_kind_is_paused_is_put_aside_at_no_cost_of_an_attempt() -> None:
    pause("mail", act())
    world.job("mail", "later")
    drain("local")
    job = Job.objects.get()
    assert (job.state, job.held, job.starts, job.releases) == ("ready", "paused", 1, 1)
    assert drain("local") == 0


def test_a_retry_of_a_job_that_ran_while_its_kind_was_paused_waits_too() -> None:
    def fail(event: Event) -> None:
        raise ValueError("no")

    with world.local(
        "fails", fail, policy=Backoff(first=timedelta(hours=1), cap=timedelta(1), attempts=3)
    ):
        job = world.job("fails")
        drain("local")
        pause("fails", act())
        Job.objects.update(held="")
        world.make_due(job)
        drain("local")
    job.refresh_from_db()
    assert (job.held, job.attempts.filter(outcome="failed").count()) == ("paused", 1)


def test_unpausing_lets_the_jobs_go_on_at_once() -> None:
    for n in range(3):
        world.job("mail", f"m-{n}")
    pause("mail", act())
    assert unpause("mail", act()) == 3
    drain("local")
    assert set(Job.objects.values_list("state", flat=True)) == {"done"}
    assert list(AuditEntry.objects.values_list("act", "about_id")) == [
        ("pause kind", "mail"),
        ("unpause kind", "mail"),
    ]


def test_the_sweep_frees_what_an_unpause_missed_and_nothing_that_is_paused() -> None:
    world.job("mail", "m")
    world.job("book", "b")
    pause("mail", act())
    pause("book", act())
    KindPause.objects.filter(kind="book").delete()
    assert sweep("command").freed == 1
    assert held() == {"m": "paused", "b": ""}


def test_the_jobs_of_a_paused_source_stay_held_until_it_is_not() -> None:
    job = world.job("mail", "m")
    Job.objects.update(held="paused")
    Source.objects.filter(pk=job.source_id).update(paused_at=timezone.now())
    assert sweep("command").freed == 0
    Source.objects.filter(pk=job.source_id).update(paused_at=None)
    assert sweep("command").freed == 1


def test_a_pause_is_one_tenants_own() -> None:
    world.job("mail", "m")
    assert pause("mail", act("other")) == 0
    drain("local")
    assert Job.objects.get().state == "done"


def test_pausing_twice_is_one_pause_and_one_entry() -> None:
    pause("mail", act())
    pause("mail", act())
    assert KindPause.objects.count() == 1
    assert AuditEntry.objects.count() == 1
    unpause("mail", act())
    assert unpause("mail", act()) == 0


def forwarded(key: str) -> Destination:
    """Return the destination of a job that waits to be sent on."""
    job = world.job("forward", key)
    Job.objects.filter(pk=job.pk).update(queue="outside")
    made, _ = Destination.objects.get_or_create(
        tenant=job.tenant, slug="crm", defaults={"url": "https://crm.example/", "sealed": b"x"}
    )
    Source.objects.filter(pk=job.source_id).update(destination=made)
    return made


def test_what_would_go_to_a_paused_destination_is_held_before_and_after_its_claim() -> None:
    crm = forwarded("before")
    world.job("book", "b")
    assert pause_destination(crm, act()) == 1
    forwarded("after")
    drain("outside")
    drain("local")
    assert held() == {"before": "paused", "after": "paused", "b": ""}
    assert Job.objects.get(key__key="after").attempts.filter(outcome="failed").count() == 0


def test_the_sweep_leaves_held_what_a_paused_destination_holds() -> None:
    crm = forwarded("f")
    pause_destination(crm, act())
    assert sweep("command").freed == 0
    assert unpause_destination(crm, act()) == 1
    assert held() == {"f": ""}


def test_a_kind_paused_on_its_own_stays_held_when_its_destination_goes_on() -> None:
    crm = forwarded("f")
    pause("forward", act())
    pause_destination(crm, act())
    assert unpause_destination(crm, act()) == 0
    assert held() == {"f": "paused"}


def test_pausing_a_destination_twice_keeps_the_first_reason_and_one_entry() -> None:
    crm = forwarded("f")
    pause_destination(crm, act())
    pause_destination(crm, Act(world.tenant("acme"), "bob", reason="again"))
    crm.refresh_from_db()
    assert (crm.paused_by, crm.pause_reason) == ("ann", "the provider is down")
    unpause_destination(crm, act())
    unpause_destination(crm, act())
    assert list(AuditEntry.objects.values_list("act", "about_id")) == [
        ("pause destination", "crm"),
        ("unpause destination", "crm"),
    ]


def test_a_destination_of_another_tenant_is_not_paused() -> None:
    crm = forwarded("f")
    assert pause_destination(crm, act("other")) == 0
    crm.refresh_from_db()
    assert crm.paused_at is None
    assert AuditEntry.objects.count() == 0


def test_a_held_job_is_not_due() -> None:
    world.job("mail", "m")
    pause("mail", act())
    assert take("local", limit=5) == []


def test_the_command_pauses_and_ends_a_pause(capsys: pytest.CaptureFixture[str]) -> None:
    world.job("mail", "m")
    call_command("pause", "mail", "--tenant", "acme", "--reason", "maintenance", "--json")
    assert json.loads(capsys.readouterr().out)["jobs_held"] == 1
    assert KindPause.objects.get().reason == "maintenance"
    call_command("pause", "mail", "--tenant", "acme", "--end", "--json")
    assert json.loads(capsys.readouterr().out) == {
        "kind": "mail",
        "tenant": "acme",
        "paused": False,
        "jobs_freed": 1,
    }
