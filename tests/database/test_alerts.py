"""Alerts on real tables: opened once, moved once, owed in the same transaction."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.db import connection, transaction

from reliability.alerts.evaluate import Evaluated, evaluate
from reliability.alerts.shipped import ship_rules
from reliability.models import (
    Alert,
    AlertDelivery,
    AlertRule,
    DeadLetter,
    Job,
    ProcessedKey,
    Report,
    Run,
    Source,
    Tenant,
)
from tests.database.letters import (
    a_source,
    a_tenant,
    accepted_keys,
    close_letters,
    dead_letters,
    jobs_of,
)

NIGHT = datetime(2026, 10, 2, 3, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
ON_CALL = "on-call@acme.example"


@pytest.fixture
def clock() -> Iterator[time_machine.Traveller]:
    with time_machine.travel(NIGHT, tick=False) as traveller:
        yield traveller


@pytest.fixture
def source(db: None, clock: time_machine.Traveller) -> Source:
    return a_source(a_tenant())


@pytest.fixture
def rule(source: Source) -> AlertRule:
    """Return the shipped rule on open letters, alone: 25, 10, 5 minutes, reminders each 4 hours."""
    ship_rules(source.tenant, [ON_CALL])
    AlertRule.objects.exclude(measure="open letters").delete()
    return AlertRule.objects.get()


def look_each_minute(clock: time_machine.Traveller, minutes: int) -> Counter[str]:
    """Evaluate once a minute and count the moves."""
    moves: Counter[str] = Counter()
    for _ in range(minutes):
        seen = evaluate("beat")
        moves += Counter(opened=seen.opened, reminded=seen.reminded, resolved=seen.resolved)
        clock.shift(MINUTE)
    return moves


def occasions() -> list[str]:
    return list(AlertDelivery.objects.order_by("pk").values_list("occasion", flat=True))


def test_ten_thousand_failures_open_once_remind_at_the_interval_and_resolve_once(
    rule: AlertRule, source: Source, clock: time_machine.Traveller
) -> None:
    dead_letters(source, 10_000)
    assert look_each_minute(clock, 6) == {"opened": 1}
    clock.shift(timedelta(hours=4) - 2 * MINUTE)
    assert look_each_minute(clock, 3) == {"reminded": 1}
    clock.shift(timedelta(hours=4) - 2 * MINUTE)
    assert look_each_minute(clock, 3) == {"reminded": 1}
    close_letters(source, 9_990)
    assert look_each_minute(clock, 3) == {"resolved": 1}

    assert occasions() == ["opened", "reminder 1", "reminder 2", "resolved"]
    counted = list(AlertDelivery.objects.order_by("pk").values_list("value", flat=True))
    assert counted == [10_000, 10_000, 10_000, 10]
    alert = Alert.objects.get()
    assert (alert.status, alert.peak, alert.since) == ("resolved", 10_000, NIGHT)
    assert alert.facts == {"last_hour": 10_000}


def test_an_alert_counts_the_open_letters_of_its_own_source_only(
    rule: AlertRule, source: Source, clock: time_machine.Traveller
) -> None:
    other = a_source(source.tenant, "adyen-eu")
    foreign = a_source(a_tenant("globex"))
    dead_letters(source, 40)
    dead_letters(other, 24)
    dead_letters(foreign, 100)
    close_letters(source, 3)
    look_each_minute(clock, 6)
    alert = Alert.objects.get()
    assert (alert.source, alert.value) == (source, 37)
    assert alert.value == DeadLetter.objects.open().filter(source=source).count()


def test_each_source_has_an_alert_of_its_own(
    rule: AlertRule, source: Source, clock: time_machine.Traveller
) -> None:
    other = a_source(source.tenant, "adyen-eu")
    dead_letters(source, 30)
    dead_letters(other, 31)
    look_each_minute(clock, 6)
    close_letters(source, 30)
    look_each_minute(clock, 1)
    status = dict(Alert.objects.values_list("source__slug", "status"))
    assert status == {"stripe-live": "resolved", "adyen-eu": "open"}


def test_a_rule_of_one_source_leaves_the_others_alone(
    rule: AlertRule, source: Source, clock: time_machine.Traveller
) -> None:
    AlertRule.objects.update(source=a_source(source.tenant, "adyen-eu"))
    dead_letters(source, 100)
    look_each_minute(clock, 6)
    assert not Alert.objects.exists()


def test_flapping_within_the_hold_tells_nobody_and_the_hold_starts_anew(
    rule: AlertRule, source: Source, clock: time_machine.Traveller
) -> None:
    for _ in range(5):
        dead_letters(source, 25)
        look_each_minute(clock, 4)
        close_letters(source, 25)
        look_each_minute(clock, 1)
    assert occasions() == []
    assert set(Alert.objects.values_list("status", flat=True)) == {"dropped"}

    dead_letters(source, 25)
    assert look_each_minute(clock, 5) == {}
    assert look_each_minute(clock, 1) == {"opened": 1}


def test_flapping_between_the_levels_is_one_alert(
    rule: AlertRule, source: Source, clock: time_machine.Traveller
) -> None:
    dead_letters(source, 30)
    look_each_minute(clock, 6)
    for _ in range(5):
        close_letters(source, 19)
        look_each_minute(clock, 2)
        dead_letters(source, 19)
        look_each_minute(clock, 2)
    assert occasions() == ["opened"]
    assert Alert.objects.count() == 1


def test_a_move_and_the_mail_it_owes_commit_together_or_not_at_all(
    rule: AlertRule, source: Source, clock: time_machine.Traveller
) -> None:
    """An outbox that cannot be written stands for a process that dies half way through a pass."""
    dead_letters(source, 30)
    look_each_minute(clock, 5)
    with connection.cursor() as cursor:
        cursor.execute(
            "ALTER TABLE reliability_alertdelivery ADD CONSTRAINT outbox_full CHECK (false) NOT VALID"
        )
    assert evaluate("beat").failed == ("acme: open letters",)
    assert Alert.objects.get().status == "pending"
    assert not Run.objects.order_by("-pk")[0].ok

    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE reliability_alertdelivery DROP CONSTRAINT outbox_full")
    assert look_each_minute(clock, 3) == {"opened": 1}
    assert occasions() == ["opened"]


def test_a_measure_that_cannot_be_read_resolves_nothing_and_stops_no_other(
    source: Source, clock: time_machine.Traveller
) -> None:
    ship_rules(source.tenant, [ON_CALL])
    Run.objects.create(job="sweep", trigger="beat", started_at=NIGHT, ended_at=NIGHT, ok=True)
    dead_letters(source, 30)
    look_each_minute(clock, 6)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE reliability_deadletter RENAME TO elsewhere")
    clock.shift(MINUTE)
    seen = evaluate("beat")
    assert seen.failed == ("acme: oldest letter", "acme: open letters")
    assert (seen.opened, seen.resolved) == (1, 0)
    opened = set(Alert.objects.filter(status="open").values_list("rule__measure", flat=True))
    assert opened == {"open letters", "sweep late"}


def test_every_pass_is_recorded_with_who_asked_for_it(
    rule: AlertRule, clock: time_machine.Traveller
) -> None:
    evaluate("worker")
    run = Run.objects.get(job="alerts")
    assert (run.trigger, run.ok, run.started_at) == ("worker", True, NIGHT)
    with pytest.raises(ValueError, match="moon"):
        evaluate("moon")


def test_a_rule_that_was_switched_off_takes_its_alerts_along_without_a_mail(
    rule: AlertRule, source: Source, clock: time_machine.Traveller
) -> None:
    dead_letters(source, 30)
    look_each_minute(clock, 6)
    AlertRule.objects.update(enabled=False)
    assert look_each_minute(clock, 1) == {}
    assert Alert.objects.get().status == "resolved"
    assert occasions() == ["opened"]


def test_an_address_that_is_named_twice_gets_one_mail(
    rule: AlertRule, source: Source, clock: time_machine.Traveller
) -> None:
    AlertRule.objects.update(emails=[ON_CALL, "lead@acme.example", ON_CALL])
    dead_letters(source, 30)
    look_each_minute(clock, 6)
    owed = sorted(AlertDelivery.objects.values_list("email", flat=True))
    assert owed == ["lead@acme.example", ON_CALL]


# Each shipped measure.


def statuses() -> dict[str, str]:
    living = Alert.objects.filter(status__in=["pending", "open"])
    return dict(living.values_list("rule__measure", "status"))


@pytest.fixture
def shipped(source: Source) -> Tenant:
    ship_rules(source.tenant, [ON_CALL])
    return source.tenant


def swept(at: datetime, *, ok: bool = True) -> None:
    Run.objects.create(job="sweep", trigger="beat", started_at=at, ended_at=at, ok=ok)


def test_a_letter_nobody_touched_for_a_day_opens_an_alert(
    shipped: Tenant, source: Source, clock: time_machine.Traveller
) -> None:
    dead_letters(source, 1)
    clock.shift(timedelta(hours=24) - MINUTE)
    swept(NIGHT + timedelta(hours=24))
    evaluate("beat")
    assert statuses() == {}
    clock.shift(MINUTE)
    evaluate("beat")
    assert statuses() == {"oldest letter": "open"}
    close_letters(source, 1)
    evaluate("beat")
    assert statuses() == {}


def test_a_sweep_that_is_late_opens_an_alert_and_a_failed_one_does_not_help(
    shipped: Tenant, clock: time_machine.Traveller
) -> None:
    swept(NIGHT)
    clock.shift(6 * MINUTE)
    swept(NIGHT + 6 * MINUTE, ok=False)
    evaluate("beat")
    assert statuses() == {"sweep late": "open"}
    swept(NIGHT + 6 * MINUTE)
    evaluate("beat")
    assert statuses() == {}


def test_a_tenant_that_was_never_swept_is_late_from_its_own_start(
    shipped: Tenant, clock: time_machine.Traveller
) -> None:
    evaluate("beat")
    assert statuses() == {}
    clock.shift(6 * MINUTE)
    evaluate("beat")
    assert statuses() == {"sweep late": "open"}


def a_report(source: Source, completeness: str, *, day: int, version: int = 1) -> None:
    Report.objects.filter(source=source, day__day=day).update(current=False)
    Report.objects.create(
        tenant=source.tenant,
        source=source,
        day=datetime(2026, 10, day, tzinfo=UTC).date(),
        version=version,
        starts_at=NIGHT,
        ends_at=NIGHT,
        completeness=completeness,
        inputs_sha256=bytes(32),
        created_at=NIGHT,
        created_by="beat",
    )


def test_absent_and_incomplete_statements_count_until_a_newer_report_is_complete(
    shipped: Tenant, source: Source, clock: time_machine.Traveller
) -> None:
    a_report(source, "complete", day=1)
    evaluate("beat")
    assert statuses() == {}
    a_report(source, "absent", day=2)
    a_report(source, "incomplete", day=3)
    evaluate("beat")
    assert Alert.objects.get().value == 2
    a_report(source, "complete", day=2, version=2)
    a_report(source, "complete", day=3, version=2)
    evaluate("beat")
    assert statuses() == {}


def test_an_accepted_event_whose_job_is_gone_opens_an_alert_that_names_the_key(
    shipped: Tenant, source: Source, clock: time_machine.Traveller
) -> None:
    keys = accepted_keys(source, 3)
    jobs = jobs_of(keys, Job.State.READY)
    absorbed, purged = accepted_keys(source, 2)
    ProcessedKey.objects.filter(pk=absorbed.pk).update(absorbed=True, operation_class="charge")
    ProcessedKey.objects.filter(pk=purged.pk).update(purged_at=NIGHT)
    evaluate("beat")
    assert statuses() == {}

    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM reliability_job WHERE id = %s", [jobs[1].pk])
    evaluate("beat")
    alert = Alert.objects.get()
    assert (alert.rule.measure, alert.status, alert.value) == ("conservation", "open", 1)
    assert alert.facts == {"key": keys[1].key}


def test_shipping_the_rules_again_changes_none(shipped: Tenant) -> None:
    AlertRule.objects.filter(measure="open letters").update(high=500)
    ship_rules(shipped, ["other@acme.example"])
    shown = {
        rule.measure: (rule.high, rule.low, rule.emails) for rule in shipped_rules(shipped)
    }
    assert shown == {
        "open letters": (500, 10, [ON_CALL]),
        "oldest letter": (86_400, 43_200, [ON_CALL]),
        "sweep late": (360, 180, [ON_CALL]),
        "statement": (1, 0, [ON_CALL]),
        "conservation": (1, 0, [ON_CALL]),
        "oldest ready job": (600, 120, [ON_CALL]),
        "beat silent": (360, 180, [ON_CALL]),
        "old snapshot": (60, 30, [ON_CALL]),
    }


def shipped_rules(tenant: Tenant) -> list[AlertRule]:
    return list(AlertRule.objects.filter(tenant=tenant))


# Two evaluators at once.


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("hold_seconds", [0, 300])
def test_two_evaluators_at_once_open_one_alert_and_owe_one_mail(hold_seconds: int) -> None:
    """The second decides on what it saw before the first committed, and waits for its row."""
    with time_machine.travel(NIGHT, tick=False) as clock:
        source = a_source(a_tenant())
        ship_rules(source.tenant, [ON_CALL])
        AlertRule.objects.exclude(measure="open letters").delete()
        AlertRule.objects.update(hold_seconds=hold_seconds)
        dead_letters(source, 30)
        if hold_seconds:
            evaluate("beat")
            clock.shift(5 * MINUTE)
        second = list[Evaluated]()
        with transaction.atomic():
            first = evaluate("beat")
            thread = threading.Thread(target=evaluate_elsewhere, args=[second])
            thread.start()
            wait_until_somebody_waits()
        thread.join(timeout=20)
    assert first.opened == 1
    assert (second[0].opened, second[0].failed) == (0, ())
    assert Alert.objects.get().status == "open"
    assert occasions() == ["opened"]


def evaluate_elsewhere(results: list[Evaluated]) -> None:
    try:
        results.append(evaluate("command"))
    finally:
        connection.close()


def wait_until_somebody_waits() -> None:
    """Return once another session waits for a lock of ours; at most 4 s."""
    waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
    with connection.cursor() as cursor:
        for _ in range(400):
            cursor.execute(waiting)
            if (row := cursor.fetchone()) and row[0]:
                return
            cursor.execute("SELECT pg_sleep(0.01)")
    pytest.fail("The second evaluator never met the first.")
