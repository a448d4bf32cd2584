"""Rows for the console's tests: small builders that read like sentences."""

import os
import uuid
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import count
from typing import Any

from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import timezone

from reliability.models import (
    AlertChannel,
    AlertRule,
    Artefact,
    Attempt,
    Body,
    DeadLetter,
    Delivery,
    Destination,
    Discrepancy,
    IgnoreRule,
    Job,
    Membership,
    Operation,
    ProcessedKey,
    Receipt,
    Redrive,
    RedriveMember,
    Report,
    SavedView,
    Silence,
    Source,
    Statement,
    Tenant,
)
from reliability.models.channel import Secrets
from reliability.outbound.signing import new_secret

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
_numbers = count(1)


def tenant(name: str = "acme") -> Tenant:
    return Tenant.objects.create(slug=name, name=name)


def source(owner: Tenant, slug: str = "stripe-live", **more: Any) -> Source:
    return Source.objects.create(tenant=owner, slug=slug, scheme="stripe", **more)


def member(owner: Tenant, role: str, name: str = "") -> User:
    """Return a person of a role in a tenant."""
    name = name or f"{role}-{owner.slug}"
    user = User.objects.filter(username=name).first() or User.objects.create_user(name)
    group = Group.objects.get(name=f"reliability {role}")
    Membership.objects.create(tenant=owner, user=user, role=group)
    return user


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


def key(of: Source, text: str = "", **more: Any) -> ProcessedKey:
    """Return a claimed key with one delivery that brought it and its body."""
    text = text or f"evt_{next(_numbers):06d}"
    raw = more.pop("raw", b'{"id": "%s"}' % text.encode())
    at = more.pop("at", None) or timezone.now() - timedelta(hours=2)
    claimed = ProcessedKey.objects.create(
        tenant=of.tenant,
        source=of,
        key=text,
        kind=more.pop("kind", "stripe.charge.refunded"),
        downstream_key=f"ik_{text}",
        body_sha256=sha256(raw).digest(),
        claimed_at=at,
        **more,
    )
    Body.objects.create(
        tenant=of.tenant, key=claimed, raw=raw, sha256=sha256(raw).digest(), created_at=at
    )
    receipt(claimed, "accepted", at=at)
    return claimed


def receipt(of: ProcessedKey, verdict: str, at: datetime | None = None) -> Receipt:
    """Return what one more delivery did to a key."""
    at = at or timezone.now()
    delivery = Delivery.objects.create(
        tenant=of.tenant,
        source=of.source,
        received_at=at,
        size_bytes=1412,
        sha256=bytes(of.body_sha256),
        answer=200,
        scheme="stripe",
    )
    return Receipt.objects.create(
        tenant=of.tenant, source=of.source, key=of, delivery=delivery, verdict=verdict, at=at
    )


def job(of: ProcessedKey, state: str = "ready", **more: Any) -> Job:
    at = more.pop("created_at", of.claimed_at)
    more.setdefault("run_at", at)
    return Job.objects.create(
        tenant=of.tenant,
        source=of.source,
        key=of,
        kind=of.kind,
        queue=more.pop("queue", "local"),
        state=state,
        created_at=at,
        **more,
    )


def letter(of: Source, text: str = "", **more: Any) -> DeadLetter:
    """Return an open dead letter that failed five times and lost one start."""
    buried_at = more.pop("buried_at", None) or timezone.now() - timedelta(minutes=44)
    amount = {name: more.get(name) for name in ("amount_minor", "currency", "exponent")}
    claimed = key(of, text, **amount, **more.pop("claimed", {}))
    dead = job(
        claimed, "dead", starts=6, crashes=1, ended_at=buried_at, **more.pop("work", {})
    )
    for number in range(1, 7):
        ended_at = buried_at - timedelta(minutes=6 - number)
        Attempt.objects.create(
            tenant=of.tenant,
            job=dead,
            round=1,
            number=number,
            token=number,
            outcome="lost" if number == 2 else "failed",
            error_type="" if number == 2 else more.get("error_type") or "LedgerRejected",
            message="" if number == 2 else more.get("message") or "422 period_locked",
            worker="pay-07",
            started_at=ended_at - timedelta(milliseconds=212),
            ended_at=ended_at,
        )
    return DeadLetter.objects.create(
        **{
            "tenant": of.tenant,
            "source": of,
            "job": dead,
            "round": 1,
            "kind": claimed.kind,
            "outcome": "failed",
            "reason": "5 of 5 failed, 1 lost",
            "error_type": "LedgerRejected",
            "message": "422 period_locked",
            "fingerprint": "f1",
            "buried_at": buried_at,
        }
        | more
    )


def operation(of: ProcessedKey) -> Operation:
    """Return the operation a key claimed."""
    return Operation.objects.create(
        tenant=of.tenant,
        source=of.source,
        operation_class=of.operation_class or "charge",
        reference=of.operation_reference or "ch_1",
        key=of,
        occurred_at=of.claimed_at,
    )


def report(of: Source, completeness: str, **more: Any) -> Report:
    """Return the current report of yesterday."""
    now = timezone.now()
    return Report.objects.create(
        tenant=of.tenant, source=of, day=now.date() - timedelta(days=1),
        completeness=completeness, starts_at=now, ends_at=now, inputs_sha256=bytes(32),
        created_at=now, created_by="beat", **{"version": 1} | more,
    )  # fmt: skip


def discrepancy(of: Source, **more: Any) -> Discrepancy:
    """Return an open discrepancy: a charge of theirs that never arrived here."""
    found = report(of, "complete", version=2, current=False)
    return Discrepancy.objects.create(
        **{
            "tenant": of.tenant,
            "source": of,
            "operation_class": "charge",
            "reference": "ch_missing",
            "family": "missing",
            "verdict": "missing",
            "currency": "EUR",
            "exponent": 2,
            "their_minor": 1840,
            "first_day": found.day,
            "last_day": found.day,
            "report": found,
            "opened_at": timezone.now(),
        }
        | more
    )


def redrive(of: Source, **more: Any) -> Redrive:
    """Return a running redrive of one letter."""
    at = timezone.now()
    made = Redrive.objects.create(
        **{
            "tenant": of.tenant, "state": "running", "asked": f"source={of.slug}",
            "cutoff_at": at, "actor": "n.okafor", "reason": "fixed", "started_at": at,
        }
        | more
    )  # fmt: skip
    one = letter(of)
    RedriveMember.objects.create(
        tenant=of.tenant, redrive=made, letter=one, job_id=one.job_id, round=1, version=1,
        verdict="will run", outcome="pending",
    )  # fmt: skip
    return made


def artefact(of: Source) -> Artefact:
    """Return a file that was kept, empty and read by nobody."""
    return Artefact.objects.create(
        tenant=of.tenant, source=of, sha256=os.urandom(32), size_bytes=0, name="day.csv",
        received_at=timezone.now(), received_by="mara",
    )  # fmt: skip


def statement(of: Source) -> Statement:
    """Return the first revision of a day, without a line."""
    return Statement.objects.create(
        tenant=of.tenant, source=of, artefact=artefact(of), statement_format="mapped-csv",
        day=NOON.date(), created_at=timezone.now(),
    )  # fmt: skip


def destination(of: Source, **more: Any) -> Destination:
    """Return a destination that the source's events are sent to."""
    columns = {"slug": f"crm-{of.slug}", "url": "https://crm.example/hook/s3cret"} | more
    made = Destination(tenant=of.tenant, public_id=uuid.uuid4(), **columns)
    made.seal("whsec_c2VjcmV0")
    made.save()
    Source.objects.filter(pk=of.pk).update(destination=made)
    return made


def ignore_rule(of: Source) -> IgnoreRule:
    """Return a rule in force until tomorrow."""
    now = timezone.now()
    return IgnoreRule.objects.create(
        tenant=of.tenant, source=of, name="shop monitor", family="missing",
        operation_class="charge", reason="test card", until=now.date() + timedelta(days=1),
        created_by="ines", created_at=now,
    )  # fmt: skip


def saved_view(of: Source, **more: Any) -> SavedView:
    """Return a shared view of the tenant's dead letters."""
    owner = more.pop("owner", None) or member(of.tenant, "operator")
    return SavedView.objects.create(
        **{
            "tenant": of.tenant, "page": "dead_letters", "name": "mine",
            "query": f"source={of.slug}", "owner": owner, "shared": True,
            "created_at": timezone.now(),
        }
        | more
    )  # fmt: skip


def silence(of: Source, **more: Any) -> Silence:
    """Return a silence of a source, in force for an hour."""
    now = timezone.now()
    return Silence.objects.create(
        **{
            "tenant": of.tenant, "source": of, "from_at": now, "until_at": now + timedelta(hours=1),
            "reason": f"{of.slug} is moved", "created_by": "ines", "created_at": now,
        }
        | more
    )  # fmt: skip


def alert_rule(of: Source, **more: Any) -> AlertRule:
    """Return a rule on the open letters of a source, held for five minutes."""
    return AlertRule.objects.create(
        **{
            "tenant": of.tenant, "source": of, "measure": "open letters", "high": 25, "low": 10,
            "name": f"Letters of {of.slug}", "hold_seconds": 300, "emails": [],
        }
        | more
    )  # fmt: skip


def channel(of: Source, address: str = "https://hooks.example/in") -> AlertChannel:
    """Return a webhook that every rule of the tenant tells; nobody looked its host up."""
    made = AlertChannel(
        tenant=of.tenant, public_id=uuid.uuid4(), name=f"hook-{of.slug}", scheme="webhook",
        shown="https://hooks.example/…", created_at=timezone.now(), created_by="ada",
    )  # fmt: skip
    made.seal(Secrets(address, new_secret()))
    made.save()
    made.rules.set(AlertRule.objects.filter(tenant=of.tenant))
    return made
