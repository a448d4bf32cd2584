"""The outgoing heartbeat: heard after each good pass of beat, and never in the way of one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.conf import LazySettings
from django.core import mail
from django.db import connection

from reliability import tasks
from reliability.alerts.checks import a_dead_beat_is_noticed
from reliability.alerts.heartbeat import heartbeat
from reliability.alerts.shipped import ship_rules
from reliability.models import Alert, AlertRule, Redrive, RedriveMember, Run
from reliability.work.dead_letters import Act
from reliability.work.redrive import cancel, pause
from tests.database.elsewhere import Heard, Says, allow_loopback, serving
from tests.database.letters import a_source, a_tenant, dead_letters

NOON = datetime(2026, 10, 2, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)

pytestmark = pytest.mark.django_db


def fine(_: Heard) -> Says:
    return Says(200, b"OK")


def test_each_good_sweep_and_look_at_the_alerts_is_heard_outside(
    settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow_loopback(monkeypatch)
    with serving(fine) as watcher:
        settings.RELIABILITY_HEARTBEAT_URL = f"{watcher.url}/ping/1"
        tasks.tick_sweep()
        tasks.tick_alerts()
    assert [(heard.method, heard.path, heard.body) for heard in watcher.heard] == [
        ("GET", "/ping/1", b"")
    ] * 2
    runs = Run.objects.filter(job="heartbeat").order_by("pk").values_list("ok", "facts")
    assert list(runs) == [
        (True, {"after": "sweep", "answer": "200"}),
        (True, {"after": "alerts", "answer": "200"}),
    ]


def test_a_pass_that_failed_is_not_told_as_good(
    settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow_loopback(monkeypatch)
    ship_rules(a_tenant(), [])
    with serving(fine) as watcher:
        settings.RELIABILITY_HEARTBEAT_URL = watcher.url
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE reliability_deadletter RENAME TO elsewhere")
        tasks.tick_alerts()
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE elsewhere RENAME TO reliability_deadletter")
    assert watcher.heard == []


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/", "https://10.0.0.1/", "ftp://x", "::"])
def test_an_address_that_may_not_be_asked_disturbs_no_pass_and_is_recorded(
    url: str, settings: LazySettings
) -> None:
    settings.RELIABILITY_HEARTBEAT_URL = url
    tasks.tick_sweep()
    tasks.tick_alerts()
    assert list(Run.objects.order_by("pk").values_list("job", "ok")) == [
        ("sweep", True), ("heartbeat", False), ("alerts", True), ("heartbeat", False),
    ]  # fmt: skip


@pytest.mark.parametrize("status", [302, 404, 500])
def test_an_answer_that_is_no_success_is_recorded_as_a_failure(
    status: int, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow_loopback(monkeypatch)
    with serving(lambda _: Says(status)) as watcher:
        settings.RELIABILITY_HEARTBEAT_URL = watcher.url
        assert not heartbeat("sweep", Run.Trigger.BEAT)
    assert len(watcher.heard) == 1
    run = Run.objects.get()
    assert (run.ok, run.facts["answer"]) == (False, str(status))


def test_without_an_address_nothing_is_sent_and_nothing_recorded() -> None:
    assert not heartbeat("sweep", Run.Trigger.BEAT)
    assert not Run.objects.exists()


def test_where_beat_is_silent_a_worker_says_so(settings: LazySettings) -> None:
    with time_machine.travel(NOON, tick=False) as clock:
        ship_rules(a_tenant(), ["on-call@acme.example"])
        tasks.tick_sweep()
        tasks.tick_alerts()
        clock.shift(2 * MINUTE)
        tasks._stand_in()
        assert list(Run.objects.values_list("trigger", flat=True).distinct()) == ["beat"]
        clock.shift(4 * MINUTE)
        tasks._stand_in()
    assert "[Reliability] Beat last ran something 6 min ago (at 6 min)" in [
        sent.subject for sent in mail.outbox
    ]


def a_redrive_that_holds_an_alert_back(clock: time_machine.Traveller) -> Redrive:
    """Return a running redrive of all letters, five minutes after they were too many."""
    source = a_source(a_tenant())
    ship_rules(source.tenant, ["on-call@acme.example"])
    AlertRule.objects.exclude(measure="open letters").delete()
    dead_letters(source, 30)
    redrive = Redrive.objects.create(
        tenant=source.tenant, state="running", asked="source=stripe-live", cutoff_at=NOON,
        actor="ines", reason="fixed", started_at=NOON, paced_at=NOON, step=2,
    )  # fmt: skip
    RedriveMember.objects.bulk_create(
        RedriveMember(
            tenant=source.tenant, redrive=redrive, letter=letter, job_id=letter.job_id,
            round=1, version=1, verdict="will run", outcome="failed again",
            settled_at=NOON,
        )
        for letter in source.letters.order_by("pk")
    )  # fmt: skip
    tasks.tick_alerts()
    clock.shift(5 * MINUTE)
    tasks.tick_alerts()
    assert Alert.objects.get().status == "pending"
    return redrive


def test_an_alert_is_judged_again_in_the_tick_that_ends_its_redrive() -> None:
    with time_machine.travel(NOON, tick=False) as clock:
        redrive = a_redrive_that_holds_an_alert_back(clock)
        tasks.tick_redrive()
        redrive.refresh_from_db()
    assert redrive.state in {"done", "stopped"}
    assert Alert.objects.get().status == "open"


@pytest.mark.parametrize("verb", [cancel, pause])
def test_an_alert_is_judged_at_once_when_an_operator_stops_its_redrive(
    verb: Callable[[Redrive, Act], Redrive],
) -> None:
    with time_machine.travel(NOON, tick=False) as clock:
        redrive = a_redrive_that_holds_an_alert_back(clock)
        verb(redrive, Act(redrive.tenant, "ines", reason="wrong letters"))
        looked = Run.objects.filter(job="alerts")
        before = looked.count()
        tasks.tick_redrive()
        assert Alert.objects.get().status == "open"
        tasks.tick_redrive()
        assert looked.count() == before + 1


def test_start_warns_when_nothing_outside_would_miss_a_dead_beat(
    settings: LazySettings,
) -> None:
    settings.DEBUG = False
    settings.EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
    settings.RELIABILITY_HEARTBEAT_URL = ""
    assert [found.id for found in a_dead_beat_is_noticed()] == ["reliability.W022"]
    settings.RELIABILITY_HEARTBEAT_URL = "https://watcher.example/1"
    assert a_dead_beat_is_noticed() == []
    settings.RELIABILITY_HEARTBEAT_URL = ""
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    assert a_dead_beat_is_noticed() == []
