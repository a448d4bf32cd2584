"""What keeps an alert from being told: silences, muted causes, redrives; and what follows them."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any

import pytest
import time_machine
from django.apps import apps
from django.core import mail
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction

from reliability.alerts.deliver import Delivered, deliver
from reliability.alerts.evaluate import evaluate
from reliability.alerts.letters import Scope
from reliability.alerts.measures import MEASURES
from reliability.alerts.shipped import ship_rules
from reliability.alerts.silences import Window, end_silence, silence
from reliability.models import (
    Alert,
    AlertDelivery,
    AlertRule,
    AuditEntry,
    DeadLetter,
    Job,
    LetterGroup,
    Redrive,
    RedriveMember,
    Run,
    Silence,
    Source,
)
from reliability.models.acting import Refused
from reliability.work.dead_letters import Act
from tests.database.letters import (
    a_source,
    a_tenant,
    accepted_keys,
    close_letters,
    dead_letters,
    jobs_of,
)

NIGHT = datetime(2026, 10, 2, 3, 0, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
ON_CALL = "on-call@acme.example"
KIND = "stripe.charge.succeeded"


@pytest.fixture
def clock() -> Iterator[time_machine.Traveller]:
    with time_machine.travel(NIGHT, tick=False) as traveller:
        yield traveller


@pytest.fixture
def source(db: None, clock: time_machine.Traveller) -> Source:
    """Return a source whose tenant has the rule on open letters alone: 25, 10, 5 minutes."""
    found = a_source(a_tenant())
    ship_rules(found.tenant, [ON_CALL])
    AlertRule.objects.exclude(measure="open letters").delete()
    return found


def act(of: Source, reason: str = "the ledger is moved") -> Act:
    return Act(of.tenant, "ines", reason=reason)


def silenced(of: Source, length: timedelta = HOUR, **scope: Any) -> Silence:
    now = datetime.now(UTC)
    planned = silence(Window(from_at=now, until_at=now + length, **scope), act(of))
    assert isinstance(planned, Silence)
    return planned


def pass_the_hold(clock: time_machine.Traveller) -> None:
    evaluate("beat")
    clock.shift(5 * MINUTE)
    evaluate("beat")


def occasions() -> list[str]:
    return list(AlertDelivery.objects.order_by("pk").values_list("occasion", flat=True))


def withheld() -> tuple[str, str]:
    alert = Alert.objects.get()
    return alert.status, alert.withheld


# Silences.


def test_a_silenced_alert_opens_unheard_and_is_told_once_when_the_silence_ends(
    source: Source, clock: time_machine.Traveller
) -> None:
    silenced(source)
    dead_letters(source, 30)
    pass_the_hold(clock)
    assert (withheld(), occasions()) == (("open", "silenced"), [])
    assert Alert.objects.get().withheld_until == NIGHT + HOUR
    clock.shift(HOUR - 5 * MINUTE - timedelta(seconds=1))
    evaluate("beat")
    assert occasions() == []
    clock.shift(timedelta(seconds=1))
    assert evaluate("beat").told == 1
    for _ in range(3):
        evaluate("beat")
    assert (withheld(), occasions()) == (("open", ""), ["opened"])
    assert deliver() == Delivered(sent=1)


def test_a_late_telling_is_followed_by_a_reminder_only_after_the_interval(
    source: Source, clock: time_machine.Traveller
) -> None:
    silenced(source, 8 * HOUR)
    dead_letters(source, 30)
    pass_the_hold(clock)
    clock.move_to(NIGHT + 8 * HOUR)
    evaluate("beat")
    clock.shift(4 * HOUR - MINUTE)
    evaluate("beat")
    assert occasions() == ["opened"]
    clock.shift(MINUTE)
    evaluate("beat")
    assert occasions() == ["opened", "reminder 1"]


def test_what_resolves_in_the_silence_it_opened_in_is_never_told(
    source: Source, clock: time_machine.Traveller
) -> None:
    silenced(source)
    dead_letters(source, 30)
    pass_the_hold(clock)
    close_letters(source, 30)
    assert evaluate("beat").resolved == 1
    clock.shift(2 * HOUR)
    evaluate("beat")
    assert (Alert.objects.get().status, occasions()) == ("resolved", [])


def test_a_resolve_of_what_was_told_waits_for_the_end_of_the_silence(
    source: Source, clock: time_machine.Traveller
) -> None:
    dead_letters(source, 30)
    pass_the_hold(clock)
    deliver()
    silenced(source)
    clock.shift(5 * HOUR - 5 * HOUR + 30 * MINUTE)
    close_letters(source, 30)
    evaluate("beat")
    assert deliver() == Delivered()
    clock.shift(30 * MINUTE)
    assert deliver() == Delivered(sent=1)
    assert ["Resolved" in str(sent.subject) for sent in mail.outbox] == [False, True]


def test_an_opening_that_no_sender_took_before_the_silence_goes_with_its_resolve(
    source: Source, clock: time_machine.Traveller
) -> None:
    dead_letters(source, 30)
    pass_the_hold(clock)
    silenced(source)
    assert deliver() == Delivered()
    close_letters(source, 30)
    evaluate("beat")
    clock.shift(2 * HOUR)
    assert (deliver(), occasions()) == (Delivered(), [])


def test_a_silence_reminds_nobody(source: Source, clock: time_machine.Traveller) -> None:
    dead_letters(source, 30)
    pass_the_hold(clock)
    silenced(source, DAY)
    clock.shift(5 * HOUR)
    assert evaluate("beat").reminded == 0
    assert occasions() == ["opened"]


def test_a_silence_that_a_person_ends_lets_the_next_look_tell(
    source: Source, clock: time_machine.Traveller
) -> None:
    planned = silenced(source, DAY)
    dead_letters(source, 30)
    pass_the_hold(clock)
    ended = end_silence(planned, act(source, "moved"))
    assert isinstance(ended, Silence)
    assert (ended.ended_at, ended.ended_by) == (NIGHT + 5 * MINUTE, "ines")
    assert evaluate("beat").told == 1
    assert isinstance(end_silence(planned, act(source)), Refused)
    acts = AuditEntry.objects.order_by("number").values_list("act", "reason")
    assert list(acts) == [("silence alerts", "the ledger is moved"), ("end silence", "moved")]


@pytest.mark.parametrize("scope", ["other source", "other rule", "foreign tenant"])
def test_a_silence_of_something_else_silences_nothing(
    scope: str, source: Source, clock: time_machine.Traveller
) -> None:
    match scope:
        case "other source":
            silenced(source, source=a_source(source.tenant, "adyen-eu"))
        case "other rule":
            other = AlertRule.objects.create(
                tenant=source.tenant, name="x", measure="sweep late", high=9**9, low=1,
                hold_seconds=0,
            )  # fmt: skip
            silenced(source, rule=other)
        case _:
            silenced(a_source(a_tenant("globex")))
    dead_letters(source, 30)
    pass_the_hold(clock)
    assert occasions() == ["opened"]
    assert deliver() == Delivered(sent=1)


def test_letters_of_a_silenced_kind_open_an_alert_and_count_for_no_delivery(
    source: Source, clock: time_machine.Traveller
) -> None:
    silenced(source, DAY, kind=KIND)
    dead_letters(source, 30)
    pass_the_hold(clock)
    alert = Alert.objects.get()
    assert (withheld(), alert.uncounted, occasions()) == (("open", "muted"), 30, [])
    dead_letters(source, 25)
    newest = DeadLetter.objects.order_by("-pk").values("pk")[:25]
    DeadLetter.objects.filter(pk__in=list(newest.values_list("pk", flat=True))).update(
        kind="x"
    )
    evaluate("beat")
    assert (withheld(), occasions()) == (("open", ""), ["opened"])


@pytest.mark.parametrize(
    ("begin", "end", "reason", "why"),
    [
        (0, 31, "x", "thirty days at most"),
        (1, 1, "x", "ends after it begins"),
        (-3, -1, "x", "is over already"),
        (0, 1, " ", "needs a reason"),
    ],
)
def test_a_silence_has_an_end_within_thirty_days_and_a_reason(
    begin: int, end: int, reason: str, why: str, source: Source
) -> None:
    window = Window(from_at=NIGHT + begin * DAY, until_at=NIGHT + end * DAY)
    refused = silence(window, act(source, reason))
    assert isinstance(refused, Refused)
    assert why in refused.why
    assert not Silence.objects.exists()
    assert not AuditEntry.objects.exists()


def test_the_database_itself_knows_no_silence_without_an_end(source: Source) -> None:
    planned = silenced(source, 30 * DAY)
    with pytest.raises(IntegrityError), transaction.atomic():
        Silence.objects.filter(pk=planned.pk).update(until_at=NIGHT + 31 * DAY)


def test_a_rule_of_another_tenant_cannot_be_silenced(source: Source) -> None:
    foreign = a_source(a_tenant("globex"))
    window = Window(from_at=NIGHT, until_at=NIGHT + DAY, source=foreign)
    refused = silence(window, act(source))
    assert isinstance(refused, Refused)
    assert "no such source" in refused.why


# Muted causes.


def mute(of: Source, until: datetime, fingerprint: str = "") -> None:
    LetterGroup.objects.create(
        tenant=of.tenant, source=of, kind=KIND, fingerprint=fingerprint, muted_until=until,
        changed_at=NIGHT, changed_by="ines",
    )  # fmt: skip


def test_a_muted_cause_opens_an_alert_that_is_told_when_the_mute_expires(
    source: Source, clock: time_machine.Traveller
) -> None:
    mute(source, NIGHT + HOUR)
    dead_letters(source, 30)
    pass_the_hold(clock)
    alert = Alert.objects.get()
    assert (withheld(), alert.value, alert.uncounted) == (("open", "muted"), 30, 30)
    clock.move_to(NIGHT + HOUR)
    assert evaluate("beat").told == 1
    assert (withheld(), Alert.objects.get().uncounted) == (("open", ""), 0)


def test_what_resolves_before_anybody_heard_of_it_is_never_told(
    source: Source, clock: time_machine.Traveller
) -> None:
    mute(source, NIGHT + HOUR)
    dead_letters(source, 30)
    pass_the_hold(clock)
    close_letters(source, 30)
    clock.move_to(NIGHT + HOUR)
    assert evaluate("beat").resolved == 1
    assert occasions() == []


def test_the_letters_beside_a_muted_cause_open_as_ever(
    source: Source, clock: time_machine.Traveller
) -> None:
    mute(source, NIGHT + DAY, fingerprint="known")
    dead_letters(source, 55)
    known = list(DeadLetter.objects.order_by("pk").values_list("pk", flat=True)[:30])
    DeadLetter.objects.filter(pk__in=known).update(fingerprint="known")
    pass_the_hold(clock)
    alert = Alert.objects.get()
    assert (alert.withheld, alert.value, alert.uncounted) == ("", 55, 30)
    deliver()
    assert "Not counted    30 of it: muted causes or silenced kinds" in str(
        mail.outbox[0].body
    )


# Redrives.


def draining(of: Source, letters: int, outcome: str = "pending") -> Redrive:
    redrive = Redrive.objects.create(
        tenant=of.tenant, state="running", asked="source=stripe-live", cutoff_at=NIGHT,
        actor="ines", reason="fixed", started_at=NIGHT,
    )  # fmt: skip
    members = [
        RedriveMember(
            tenant=of.tenant, redrive=redrive, letter=letter, job_id=letter.job_id, round=1,
            version=1, verdict="will run", outcome=outcome,
        )
        for letter in DeadLetter.objects.order_by("pk")[:letters]
    ]  # fmt: skip
    RedriveMember.objects.bulk_create(members)
    return redrive


def test_what_a_running_redrive_drains_opens_nothing_and_is_judged_at_once_when_it_stops(
    source: Source, clock: time_machine.Traveller
) -> None:
    dead_letters(source, 30)
    redrive = draining(source, 30)
    pass_the_hold(clock)
    clock.shift(HOUR)
    evaluate("beat")
    assert (withheld(), occasions()) == (("pending", "draining"), [])
    Redrive.objects.filter(pk=redrive.pk).update(state="stopped")
    assert evaluate("beat").opened == 1
    assert occasions() == ["opened"]


def test_a_redrive_reminds_nobody_of_what_it_drains(
    source: Source, clock: time_machine.Traveller
) -> None:
    dead_letters(source, 30)
    pass_the_hold(clock)
    redrive = draining(source, 30)
    clock.shift(5 * HOUR)
    assert evaluate("beat").reminded == 0
    assert withheld() == ("open", "draining")
    Redrive.objects.filter(pk=redrive.pk).update(state="done")
    assert evaluate("beat").reminded == 1


def test_letters_that_a_redrive_does_not_take_open_an_alert_all_the_same(
    source: Source, clock: time_machine.Traveller
) -> None:
    dead_letters(source, 55)
    draining(source, 30)
    pass_the_hold(clock)
    assert (Alert.objects.get().withheld, occasions()) == ("", ["opened"])


def test_what_is_muted_and_what_is_drained_are_both_left_out(
    source: Source, clock: time_machine.Traveller
) -> None:
    """Of 60 letters 20 are muted and 20 on their way: the last 20 wake nobody."""
    mute(source, NIGHT + HOUR, fingerprint="known")
    dead_letters(source, 60)
    draining(source, 20)
    newest = DeadLetter.objects.order_by("-pk").values_list("pk", flat=True)[:20]
    DeadLetter.objects.filter(pk__in=list(newest)).update(fingerprint="known")
    pass_the_hold(clock)
    assert (withheld(), occasions()) == (("open", "muted"), [])
    assert Alert.objects.get().uncounted == 20


def test_letters_that_a_redrive_left_alone_are_not_drained_by_it(
    source: Source, clock: time_machine.Traveller
) -> None:
    dead_letters(source, 30)
    draining(source, 30, outcome="left alone")
    pass_the_hold(clock)
    assert occasions() == ["opened"]


def test_an_old_letter_on_its_way_through_a_redrive_wakes_nobody(
    source: Source, clock: time_machine.Traveller
) -> None:
    AlertRule.objects.update(measure="oldest letter", high=86_400, low=43_200, hold_seconds=0)
    dead_letters(source, 2)
    redrive = draining(source, 2)
    clock.shift(2 * DAY)
    evaluate("beat")
    assert not Alert.objects.exists()
    Redrive.objects.filter(pk=redrive.pk).update(state="done")
    evaluate("beat")
    assert occasions() == ["opened"]


# Measures that look at less than everything, or at the machinery.


def seen(measure: str, of: Source, **scope: Any) -> dict[int | None, int]:
    return dict(MEASURES[measure](Scope(tenant=of.tenant, **scope), datetime.now(UTC)))


def test_money_at_risk_is_of_one_currency_and_nets_no_refund(source: Source) -> None:
    dead_letters(source, 3)  # 19.99 EUR each
    first, second = DeadLetter.objects.order_by("pk")[:2]
    DeadLetter.objects.filter(pk=first.pk).update(amount_minor=-50_000)
    DeadLetter.objects.filter(pk=second.pk).update(
        currency="JPY", amount_minor=700, exponent=0
    )
    assert seen("money at risk", source, currency="EUR") == {source.pk: 519}
    assert seen("money at risk", source, currency="JPY") == {source.pk: 700}


def test_inflow_counts_the_letters_of_the_last_hour(
    source: Source, clock: time_machine.Traveller
) -> None:
    dead_letters(source, 3)
    clock.shift(59 * MINUTE)
    dead_letters(source, 2)
    assert seen("inflow", source) == {source.pk: 5}
    clock.shift(MINUTE)
    assert seen("inflow", source) == {source.pk: 2}


def test_a_rule_of_one_cause_counts_its_letters_only(
    source: Source, clock: time_machine.Traveller
) -> None:
    AlertRule.objects.update(fingerprint="bad release", kind=KIND, high=3, low=1)
    dead_letters(source, 30)
    pass_the_hold(clock)
    assert not Alert.objects.exists()
    some = list(DeadLetter.objects.values_list("pk", flat=True)[:3])
    DeadLetter.objects.filter(pk__in=some).update(fingerprint="bad release")
    pass_the_hold(clock)
    assert Alert.objects.get().value == 3
    deliver()
    [sent] = mail.outbox
    assert "?source=stripe-live&kind=stripe.charge.succeeded&cause=bad+release" in sent.body


def test_a_due_job_that_nobody_starts_ages_and_a_held_one_does_not(
    source: Source, clock: time_machine.Traveller
) -> None:
    [waits, held] = jobs_of(accepted_keys(source, 2), Job.State.READY)
    Job.objects.filter(pk=waits.pk).update(queue="local")
    Job.objects.filter(pk=held.pk).update(
        queue="outside", held="paused", run_at=NIGHT - 10 * HOUR
    )
    clock.shift(59 * timedelta(seconds=1))
    assert seen("oldest ready job", source) == {}
    clock.shift(10 * MINUTE)
    assert seen("oldest ready job", source) == {source.pk: 659}


def test_a_beat_that_ran_nothing_for_six_minutes_is_reported_by_whoever_looks(
    source: Source, clock: time_machine.Traveller
) -> None:
    ship_rules(source.tenant, [ON_CALL])
    AlertRule.objects.exclude(measure="beat silent").delete()
    Run.objects.create(job="sweep", trigger="beat", started_at=NIGHT, ended_at=NIGHT, ok=True)
    clock.shift(6 * MINUTE - timedelta(seconds=1))
    evaluate("worker")
    assert not Alert.objects.exists()
    clock.shift(timedelta(seconds=1))
    assert evaluate("worker").opened == 1
    assert evaluate("beat").resolved == 1


@pytest.mark.django_db(transaction=True)
def test_a_session_that_holds_a_snapshot_is_seen_and_an_idle_one_is_not() -> None:
    tenant = a_tenant()
    scope = Scope(tenant=tenant)
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
            cursor.execute("SELECT 1")
            assert MEASURES["old snapshot"](scope, NIGHT) == {}
            cursor.execute("ROLLBACK")
            cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            cursor.execute("SELECT count(*) FROM reliability_tenant")
            held = MEASURES["old snapshot"](scope, NIGHT)
            assert list(held) == [None]
            assert held[None] >= 0
            cursor.execute("ROLLBACK")
    finally:
        other.close()


# The command.


def alerts(*arguments: str) -> str:
    out = io.StringIO()
    call_command("alerts", *arguments, stdout=out)
    return out.getvalue()


def test_the_command_silences_lists_and_ends(source: Source) -> None:
    planned = json.loads(
        alerts(
            "silence", "--tenant", "acme", "--from", "2026-10-02T05:00+02:00",
            "--until", "2026-10-02T06:00+00:00", "--source", "stripe-live", "--reason", "moved",
            "--json",
        )
    )  # fmt: skip
    assert (planned["covers"], planned["from"]) == ("stripe-live", "2026-10-02T03:00+00:00")
    listed = json.loads(alerts("silences", "--json"))["silences"]
    assert [one["silence"] for one in listed] == [planned["silence"]]
    alerts("end", "--tenant", "acme", "--silence", planned["silence"], "--reason", "done")
    assert Silence.objects.get().ended_at == NIGHT
    with pytest.raises(CommandError, match="over already"):
        alerts("end", "--tenant", "acme", "--silence", planned["silence"])
    with pytest.raises(CommandError, match="--until takes a time"):
        alerts("silence", "--tenant", "acme", "--from", "2026-10-02", "--reason", "x")


def test_tenants_from_before_get_the_rules_shipped_since_and_tell_the_same_people(
    source: Source,
) -> None:
    ship_rules(source.tenant, [ON_CALL])
    ship_rules(a_tenant("globex"), [])
    since = ("oldest ready job", "beat silent", "old snapshot")
    AlertRule.objects.filter(measure__in=since).delete()
    migration = import_module("reliability.migrations.0043_more_shipped_rules")
    for _ in range(2):
        with connection.schema_editor() as editor:
            migration.ship(apps, editor)
    added = AlertRule.objects.filter(tenant=source.tenant, measure__in=since).order_by("pk")
    assert list(added.values_list("measure", "high", "low", "emails")) == [
        ("oldest ready job", 600, 120, [ON_CALL]),
        ("beat silent", 360, 180, [ON_CALL]),
        ("old snapshot", 60, 30, [ON_CALL]),
    ]
    assert AlertRule.objects.filter(tenant__slug="globex", measure__in=since).count() == 3


def test_the_command_adds_a_rule_of_one_cause_and_shipping_again_meets_it_in_peace(
    source: Source,
) -> None:
    alerts(
        "add", "--tenant", "acme", "--measure", "open letters", "--name", "Bad release",
        "--high", "5", "--low", "1", "--hold", "60", "--cause", "f1", "--email", ON_CALL,
        "--owner", "ines",
    )  # fmt: skip
    ship_rules(source.tenant, [ON_CALL])
    rule = AlertRule.objects.get(fingerprint="f1")
    assert (rule.name, rule.high, rule.low, rule.hold_seconds) == ("Bad release", 5, 1, 60)
    assert AuditEntry.objects.get().act == "add alert rule"


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (["--measure", "moon"], "Unknown measure"),
        (["--measure", "money at risk"], "names its currency"),
        (["--low", "6"], "closes below where it opens"),
        (["--high", "0", "--low", "0"], "closes below where it opens"),
        (["--measure", "sweep late", "--cause", "f1"], "Only rules on letters"),
        (["--measure", "statement", "--kind", "k"], "letters and jobs"),
        (["--email", "nobody"], "is not a mail address"),
        (["--name", " "], "has a name"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(
    wrong: list[str], why: str, source: Source
) -> None:
    good = [
        "add",
        "--tenant",
        "acme",
        "--measure",
        "open letters",
        "--name",
        "x",
        "--high",
        "5",
    ]
    with pytest.raises(CommandError, match=why):
        alerts(*good, *wrong)
    assert AlertRule.objects.count() == 1
