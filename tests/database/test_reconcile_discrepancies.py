"""A discrepancy's life: carried, settled by what comes late, recovered, contradicted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.contrib.auth.models import Group
from django.db import DatabaseError, transaction

from reliability.claim.accept import Asked, claim
from reliability.handlers import Event, MappedOperation
from reliability.models import (
    AuditEntry,
    Body,
    Discrepancy,
    IgnoreRule,
    Job,
    Operation,
    Source,
)
from reliability.reconcile.day import compare_day
from reliability.reconcile.discrepancies import (
    Changed,
    Refusal,
    ignore,
    reopen,
    resolve,
    settle,
)
from reliability.reconcile.ignoring import Ruled, Wanted, add_rule, end_rule
from reliability.reconcile.recover import Asked as AskedToRecover
from reliability.reconcile.recover import Recovered, recover
from reliability.work.dead_letters import Act
from reliability.work.drain import drain
from tests.database import world
from tests.database.days import (
    DAY,
    MORNING_AFTER,
    NOON,
    Row,
    a_source,
    bring,
    open_ones,
    operation,
    report,
    told,
)

pytestmark = pytest.mark.django_db

ONE_DAY = timedelta(days=1)
NEXT = "2026-10-15T12:00:00+02:00"
KIND = "stripe.charge.succeeded"


@pytest.fixture(autouse=True)
def clock() -> Iterator[time_machine.Traveller]:
    with time_machine.travel(MORNING_AFTER, tick=False) as traveller:
        yield traveller


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    with world.local(KIND, effect), world.local("stripe.refund.created", effect):
        yield


def effect(event: Event) -> None:
    Group.objects.create(name=f"{event.key} {event.payload['data']['object']['amount']}")


@pytest.fixture
def source() -> Source:
    return a_source()


def act(source: Source, reason: str = "checked with the shop") -> Act:
    return Act(tenant=source.tenant, actor="mara", reason=reason)


def the_one(source: Source) -> Discrepancy:
    return Discrepancy.objects.get(source=source)


# Carried.


def test_the_same_disagreement_is_one_discrepancy_with_its_first_day(
    source: Source, clock: time_machine.Traveller
) -> None:
    operation(source, "ch_1", 900)
    report(source, Row("ch_1"))
    first = the_one(source)
    clock.shift(ONE_DAY)
    operation(source, "ch_2", 900, occurred_at=NOON + ONE_DAY)
    report(source, Row("ch_2", occurred=NEXT), day=DAY + ONE_DAY)
    assert the_one_of(source, "ch_1") == (first.pk, "open", DAY, DAY)
    assert the_one_of(source, "ch_2")[1:] == ("open", DAY + ONE_DAY, DAY + ONE_DAY)


def the_one_of(source: Source, reference: str) -> tuple[int, str, date, date]:
    found = Discrepancy.objects.get(source=source, reference=reference)
    return found.pk, found.status, found.first_day, found.last_day


def test_a_late_event_settles_what_was_missing_with_its_evidence(source: Source) -> None:
    report(source, Row("ch_1"))
    job = operation(source, "ch_1")
    Job.objects.filter(pk=job.pk).update(ended_at=MORNING_AFTER)
    assert settle().closed == 1
    found = the_one(source)
    assert (found.status, found.resolution) == ("resolved", "automatic")
    assert found.closed_reason == (
        f"event {job.key.key} was accepted 2026-10-15 06:00:00 UTC "
        "and took effect 2026-10-15 06:00:00 UTC"
    )


@pytest.mark.parametrize(
    "facts", [{"amount_minor": 999}, {"currency": "USD"}, {"state": "dead"}]
)
def test_a_late_event_that_says_otherwise_settles_nothing(
    source: Source, facts: dict[str, object]
) -> None:
    report(source, Row("ch_1"))
    operation(source, "ch_1", **facts)  # type: ignore[arg-type]
    assert settle().closed == 0
    assert open_ones(source) == {("ch_1", "missing")}


def test_a_newer_version_that_agrees_closes_it(source: Source) -> None:
    report(source, Row("ch_1"))
    operation(source, "ch_1")
    compare_day(source, DAY, by="mara")
    found = the_one(source)
    assert (found.status, found.resolution, found.closed_by) == (
        "resolved", "automatic", "the compare",
    )  # fmt: skip
    assert "matched on 2026-10-14, version 2" in found.closed_reason


def test_a_revised_statement_without_the_line_closes_it(source: Source) -> None:
    report(source, Row("ch_1"))
    report(source, Row("ch_2"))
    assert open_ones(source) == {("ch_2", "missing")}


def test_an_incomplete_statement_closes_nothing(source: Source) -> None:
    report(source, Row("ch_1"))
    report(source, declared=7)
    assert open_ones(source) == {("ch_1", "missing")}


def test_a_settled_one_opens_again_when_a_newer_version_contradicts(source: Source) -> None:
    report(source, Row("ch_1"))
    job = operation(source, "ch_1")
    compare_day(source, DAY, by="mara")
    assert the_one(source).status == "resolved"
    Operation.objects.filter(key_id=job.key_id).update(reference="ch_other")
    compare_day(source, DAY, by="mara")
    found = Discrepancy.objects.get(reference="ch_1")
    assert (found.status, found.closed_by, found.resolution) == ("open", "", "")
    entry = AuditEntry.objects.get(act="reopen")
    assert (entry.actor, entry.about_id) == ("the compare", str(found.public_id))


# By hand.


def test_ignoring_needs_a_reason_and_leaves_an_audit_entry(source: Source) -> None:
    report(source, Row("ch_1"))
    assert isinstance(ignore(the_one(source), act(source, reason=" ")), Refusal)
    assert isinstance(ignore(the_one(source), act(source), until=DAY), Changed)
    found = the_one(source)
    assert (found.status, found.ignored_until, found.closed_by) == ("ignored", DAY, "mara")
    entry = AuditEntry.objects.get(act="ignore")
    assert (entry.actor, entry.reason) == ("mara", "checked with the shop")


def test_an_ignored_one_stays_so_until_its_last_day_is_over(
    source: Source, clock: time_machine.Traveller
) -> None:
    report(source, Row("ch_1"))
    ignore(the_one(source), act(source), until=DAY)
    report(source, Row("ch_1"), Row("ch_2"))
    assert the_one_of(source, "ch_1")[1] == "ignored"
    clock.shift(ONE_DAY)
    report(source, Row("ch_1", occurred=NEXT), day=DAY + ONE_DAY)
    assert the_one_of(source, "ch_1")[1] == "open"


def test_what_a_person_settled_stays_settled_until_the_figures_change(source: Source) -> None:
    operation(source, "ch_1", 900)
    report(source, Row("ch_1"))
    resolve(the_one(source), act(source))
    report(source, Row("ch_1"), Row("ch_2"))
    assert the_one_of(source, "ch_1")[1] == "resolved"
    report(source, Row("ch_1", "11.00"))
    assert the_one_of(source, "ch_1")[1] == "open"


def test_the_second_person_is_told_who_was_first(source: Source) -> None:
    report(source, Row("ch_1"))
    seen_by_both = the_one(source)
    assert isinstance(resolve(seen_by_both, act(source)), Changed)
    assert ignore(seen_by_both, act(source)) == Refusal(
        "It has moved on since this page was loaded: resolved by mara."
    )
    assert isinstance(reopen(the_one(source), act(source)), Changed)
    assert the_one(source).status == "open"


def test_a_page_from_before_the_newest_version_decides_nothing(source: Source) -> None:
    report(source, Row("ch_1"))
    stale = the_one(source)
    report(source, Row("ch_1", "11.00"))
    assert isinstance(ignore(stale, act(source)), Refusal)
    assert isinstance(recover(stale, act(source)), Refusal)
    assert (the_one(source).status, Job.objects.count()) == ("open", 0)


def test_another_tenant_s_person_changes_nothing(source: Source) -> None:
    report(source, Row("ch_1"))
    stranger = Act(tenant=world.tenant("borealis"), actor="eve", reason="because")
    assert isinstance(ignore(the_one(source), stranger), Refusal)
    assert recover(the_one(source), stranger) == Refusal("There is no such discrepancy.")
    assert open_ones(source) == {("ch_1", "missing")}


# Recovering.


def test_a_recovered_event_takes_effect_once_and_the_next_compare_agrees(
    source: Source,
) -> None:
    report(source, Row("ch_1", "12.34"))
    done = recover(the_one(source), act(source))
    assert isinstance(done, Recovered), done
    assert done.discrepancy.status == "recovering"
    assert drain("local") == 1
    assert [group.name for group in Group.objects.filter(name__startswith="recovered")] == [
        "recovered:ch_1 1234"
    ]
    again = compare_day(source, DAY, by="mara")
    assert told(again) == {("ch_1", "matched", "")}
    assert the_one(source).status == "recovered"


def test_the_event_looks_like_the_provider_s_own(source: Source) -> None:
    report(source, Row("ch_1", "12.34"))
    recover(the_one(source), act(source))
    body = json.loads(bytes(Body.objects.get().raw))
    assert (body["id"], body["type"], body["object"]) == (
        "recovered:ch_1", "charge.succeeded", "event",
    )  # fmt: skip
    made = body["data"]["object"]
    at = datetime(2026, 10, 14, 10, tzinfo=UTC)
    assert made == {
        "object": "charge",
        "id": "ch_1",
        "amount": 1234,
        "amount_captured": 1234,
        "currency": "eur",
        "created": int(at.timestamp()),
        "status": "succeeded",
    }


def test_a_recovered_refund_has_its_amount_without_a_sign(source: Source) -> None:
    report(source, Row("re_1", "-5.00", kind="refund"))
    assert isinstance(recover(the_one(source), act(source)), Recovered)
    assert drain("local") == 1
    assert Operation.objects.get().amount_minor == 500
    assert told(compare_day(source, DAY, by="mara")) == {("re_1", "matched", "")}


def test_a_webhook_that_arrives_after_the_recovery_is_absorbed(source: Source) -> None:
    report(source, Row("ch_1"))
    recover(the_one(source), act(source))
    drain("local")
    mapped = MappedOperation(
        operation_class="charge",
        reference="ch_1",
        amount_minor=1000,
        currency="EUR",
        exponent=2,
    )
    late = Asked(key="evt_late", kind=KIND, body=b"{}", queue="local", operation=mapped)
    [fate] = claim(source, [late])
    assert (fate.verdict, fate.claimant) == ("absorbed", "recovered:ch_1")
    assert drain("local") == 0
    assert Job.objects.count() == 1


def test_recovering_twice_does_it_once(source: Source) -> None:
    report(source, Row("ch_1"))
    seen = the_one(source)
    assert isinstance(recover(seen, act(source)), Recovered)
    assert isinstance(recover(seen, act(source)), Refusal)
    assert isinstance(recover(the_one(source), act(source)), Refusal)
    assert (Job.objects.count(), AuditEntry.objects.filter(act="recover").count()) == (1, 1)


def test_what_was_seen_and_never_completed_is_requeued_not_claimed_anew(
    source: Source, clock: time_machine.Traveller
) -> None:
    job = operation(source, "ch_1", state="dead")
    report(source, Row("ch_1"))
    done = recover(the_one(source), act(source))
    assert isinstance(done, Recovered)
    assert done.how == "Its dead letter was requeued: same key, fresh attempts."
    job.refresh_from_db()
    assert (job.state, job.round, Job.objects.count()) == ("ready", 2, 1)
    bring(job, "done")
    Job.objects.filter(pk=job.pk).update(ended_at=MORNING_AFTER)
    assert settle().closed == 1
    assert the_one(source).status == "recovered"


def test_a_recovery_that_dies_is_open_again(source: Source) -> None:
    report(source, Row("ch_1"))
    recover(the_one(source), act(source))
    bring(Job.objects.get(), "dead")
    assert settle().reopened == 1
    found = the_one(source)
    assert (found.status, found.cause) == ("open", "in_dead_letter")


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ("done", "It has taken effect already; run the compare again to see it."),
        ("discarded", "Its dead letter was discarded; restore the letter first."),
    ],
)
def test_what_needs_no_recovery_is_refused_with_the_reason(
    source: Source, state: str, why: str
) -> None:
    report(source, Row("ch_1"))
    operation(source, "ch_1", state=state)
    assert recover(the_one(source), act(source)) == Refusal(why)
    assert the_one(source).status == "open"


def test_nothing_is_claimed_where_nothing_would_handle_it(source: Source) -> None:
    Source.objects.filter(pk=source.pk).update(statement_kinds=["payout"])
    source.refresh_from_db()
    report(source, Row("po_1", kind="payout"))
    refused = recover(the_one(source), act(source))
    assert refused == Refusal(
        "Nothing here handles stripe.payout.paid: recovering would have no effect."
    )
    assert Job.objects.count() == 0


# Above what one person may decide.


def test_a_large_recovery_takes_two_people(source: Source) -> None:
    report(source, Row("ch_1", "10000.01"))
    asked = recover(the_one(source), act(source))
    assert isinstance(asked, AskedToRecover)
    assert Job.objects.count() == 0
    assert isinstance(recover(the_one(source), act(source)), Refusal)
    second = Act(tenant=source.tenant, actor="ines")
    assert isinstance(recover(the_one(source), second), Recovered)
    assert (the_one(source).recover_asked_by, the_one(source).recovered_by) == ("mara", "ines")
    acts = AuditEntry.objects.order_by("number").values_list("act", "actor")
    assert list(acts) == [("ask to recover", "mara"), ("recover", "ines")]


@pytest.mark.parametrize(
    ("amount", "limits", "two"),
    [("10000.00", {}, False), ("5.01", {"EUR": 500}, True), ("5.00", {"EUR": 500}, False)],
)
def test_the_limit_is_of_the_currency(
    source: Source,
    amount: str,
    limits: dict[str, int],
    two: bool,  # noqa: FBT001
) -> None:
    options = source.statement_options | {"recover_limit_minor": limits}
    Source.objects.filter(pk=source.pk).update(statement_options=options)
    source.refresh_from_db()
    report(source, Row("ch_1", amount))
    assert the_one(source).needs_two is two


def test_the_database_itself_refuses_a_large_recovery_by_one_person(source: Source) -> None:
    report(source, Row("ch_1", "10000.01"))
    alone = {"status": "recovering", "recover_asked_by": "mara", "recovered_by": "mara"}
    with pytest.raises(DatabaseError, match="take_two_people"), transaction.atomic():
        Discrepancy.objects.filter(source=source).update(**alone)


# Rules.


def a_rule(source: Source, **more: Any) -> IgnoreRule:
    usual: dict[str, Any] = {
        "name": "test card of the shop monitor",
        "family": "missing",
        "operation_class": "charge",
        "until": DAY + timedelta(days=30),
    }
    made = add_rule(source, Wanted(**usual | more), act(source))
    assert isinstance(made, Ruled), made
    return made.rule


@pytest.mark.parametrize(
    ("more", "ignored"),
    [
        ({}, True),
        ({"starts_with": "ch_t"}, True),
        ({"starts_with": "ch_x"}, False),
        ({"amount_minor_max": 1000, "currency": "EUR"}, True),
        ({"amount_minor_max": 999, "currency": "EUR"}, False),
        ({"amount_minor_max": 1000, "currency": "USD"}, False),
        ({"family": "unexpected"}, False),
        ({"operation_class": "refund"}, False),
    ],
)
def test_a_rule_ignores_what_fits_it_and_nothing_else(
    source: Source,
    more: dict[str, Any],
    ignored: bool,  # noqa: FBT001
) -> None:
    a_rule(source, **more)
    report(source, Row("ch_test", "10.00"))
    assert the_one(source).status == ("ignored" if ignored else "open")


def test_a_rule_that_ends_opens_what_it_ignored(source: Source) -> None:
    rule = a_rule(source)
    report(source, Row("ch_1"))
    assert (the_one(source).rule, the_one(source).closed_reason) == (rule, rule.name)
    assert isinstance(end_rule(rule, act(source)), Ruled)
    assert isinstance(end_rule(rule, act(source)), Refusal)
    assert open_ones(source) == {("ch_1", "missing")}
    report(source, Row("ch_1"), Row("ch_2"))
    assert open_ones(source) == {("ch_1", "missing"), ("ch_2", "missing")}


def test_a_rule_says_nothing_of_days_after_its_last(
    source: Source, clock: time_machine.Traveller
) -> None:
    a_rule(source, until=DAY + ONE_DAY)
    clock.shift(2 * ONE_DAY)
    later = "2026-10-16T12:00:00+02:00"
    report(source, Row("ch_1", occurred=later), day=DAY + 2 * ONE_DAY)
    assert open_ones(source) == {("ch_1", "missing")}


@pytest.mark.parametrize(
    "more",
    [
        {"name": " "},
        {"family": "anything"},
        {"operation_class": "payout"},
        {"until": DAY - timedelta(days=9)},
        {"until": DAY + timedelta(days=400)},
        {"amount_minor_max": 5},
    ],
)
def test_a_rule_without_bounds_is_refused(source: Source, more: dict[str, Any]) -> None:
    usual: dict[str, Any] = {
        "name": "n",
        "family": "missing",
        "operation_class": "charge",
        "until": DAY + ONE_DAY,
    }
    assert isinstance(add_rule(source, Wanted(**usual | more), act(source)), Refusal)
    assert IgnoreRule.objects.count() == 0
