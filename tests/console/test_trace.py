"""The trace tells the whole story of a key, once, to whoever may know it."""

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from reliability.models import (
    Artefact,
    ProcessedKey,
    Source,
    Statement,
    StatementLine,
    Tenant,
    Verdict,
)
from reliability.work.dead_letters import Act, Seen, requeue
from tests.console import rows

pytestmark = pytest.mark.django_db


def _text(client: Client, address: str, **query: Any) -> str:
    return client.get(address, query).content.decode()


def test_a_trace_tells_arrivals_starts_burial_and_acts_in_order(
    acme: Tenant, stripe: Source, viewer: Client
) -> None:
    letter = rows.letter(stripe, "evt_story")
    rows.receipt(letter.job.key, "duplicate")
    other = rows.letter(stripe)
    seen = [Seen(letter.pk, 1), Seen(other.pk, 1)]
    requeue(seen, Act(acme, "n.okafor", reason="handler fixed"))
    told = _text(viewer, "/trace/", find="evt_story")
    assert "Arrived twice, started 6 times, and waits for its next start." in told
    story = [
        "Delivered and claimed", "Start 1 failed", "Start 2 lost", "Start 6 failed",
        f"Buried as DL-{letter.pk}", "Delivered again, a duplicate", "Requeued by n.okafor",
        "with 1 others", "handler fixed",
    ]  # fmt: skip
    positions = [told.find(part) for part in story]
    assert -1 not in positions
    assert positions == sorted(positions)


def test_a_key_a_job_a_letter_a_delivery_and_a_reference_lead_to_one_story(
    stripe: Source, viewer: Client
) -> None:
    letter = rows.letter(
        stripe,
        "evt_one",
        claimed={"operation_class": "charge", "operation_reference": "ch_1"},
    )
    rows.operation(letter.job.key)
    delivery = letter.job.key.receipts.get().delivery
    assert delivery
    for find in (
        "evt_one", "ch_1", f"DL-{letter.pk}", str(letter.job.pk), letter.job.public_id,
        letter.public_id, delivery.public_id,
    ):  # fmt: skip
        told = _text(viewer, "/trace/", find=find)
        assert 'What happened to <span class="key">evt_one</span>' in told, find


def test_two_events_of_one_charge_share_their_story(stripe: Source, viewer: Client) -> None:
    first = rows.key(stripe, "evt_first", operation_class="charge", operation_reference="ch_1")
    rows.operation(first)
    rows.job(first, "done", starts=1)
    second = ProcessedKey.objects.create(
        tenant=stripe.tenant, source=stripe, key="evt_second", kind="stripe.charge.updated",
        downstream_key="ik", operation_class="charge", operation_reference="ch_1",
        absorbed=True, body_sha256=bytes(32), claimed_at=timezone.now(),
    )  # fmt: skip
    rows.receipt(second, "absorbed")
    for find in ("evt_first", "evt_second", "ch_1"):
        told = _text(viewer, "/trace/", find=find)
        assert "Arrived twice, started once, took effect once." in told
        assert "Delivered, absorbed as evt_second" in told


def test_one_key_in_two_sources_is_a_list_to_choose_from(
    acme: Tenant, stripe: Source, viewer: Client
) -> None:
    rows.letter(stripe, "evt_same")
    rows.letter(rows.source(acme, "stripe-test"), "evt_same")
    told = _text(viewer, "/trace/", find="evt_same")
    assert "2 claims answer to" in told
    chosen = _text(viewer, "/trace/", find="evt_same", source="stripe-test")
    assert "stripe-test, acme" in chosen


def test_a_key_is_found_only_exactly_as_written(stripe: Source, viewer: Client) -> None:
    rows.letter(stripe, "evt_Exact")
    for find in ("evt_exact", " evt_Exact", "evt_Exac"):
        assert "Never seen here." in _text(viewer, "/trace/", find=find)


def test_a_trace_refuses_what_it_does_not_understand(viewer: Client) -> None:
    assert viewer.get("/trace/", {"fnid": "x"}).status_code == 400
    assert viewer.get("/trace/", {"find": "x" * 300}).status_code == 400


def _statement(of: Source) -> Statement:
    now = timezone.now()
    artefact = Artefact.objects.create(
        tenant=of.tenant, source=of, sha256=bytes(32), size_bytes=1, name="x.csv",
        received_at=now, received_by="finance",
    )  # fmt: skip
    return Statement.objects.create(
        tenant=of.tenant, source=of, artefact=artefact, statement_format="csv",
        day=now.date(), created_at=now,
    )  # fmt: skip


def _line(of: Statement, reference: str) -> StatementLine:
    return StatementLine.objects.create(
        tenant=of.tenant, statement=of, position=7204, identity=reference, kind="charge",
        operation_class="charge", reference=reference, amount_minor=1, currency="EUR",
        exponent=2, raw="",
    )  # fmt: skip


def test_a_reference_only_the_statement_names_is_told_as_never_received(
    stripe: Source, viewer: Client
) -> None:
    _line(_statement(stripe), "ch_missing")
    told = _text(viewer, "/trace/", find="ch_missing")
    assert "No event of ours carries it" in told
    assert "Named on line 7\u202f204 of stripe-live" in told


def test_a_matched_operation_says_that_the_statement_agrees(
    stripe: Source, viewer: Client
) -> None:
    claimed = rows.key(stripe, "evt_1", operation_class="charge", operation_reference="ch_1")
    rows.job(claimed, "done", starts=1)
    operation = rows.operation(claimed)
    report = rows.report(stripe, "complete")
    Verdict.objects.create(
        tenant=stripe.tenant, report=report, line=_line(_statement(stripe), "ch_1"),
        operation=operation, verdict="matched",
    )  # fmt: skip
    told = _text(viewer, "/trace/", find="evt_1")
    assert "took effect once. The provider’s statement agrees." in told
    assert "Matched with line 7\u202f204" in told
