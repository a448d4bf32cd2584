"""Who watches: recorded passes, alert rules and alerts, and the audit trail."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.contrib.postgres.indexes import GinIndex
from django.db import connection, models, transaction
from django.db.models import Q
from django.utils import timezone

from reliability.models import columns
from reliability.models.source import Tenant

AUDIT_LOCK = 0x52454C41
"""First number of the advisory lock under which a tenant's chain grows; the tenant is the second."""


class Run(models.Model):
    """One recorded pass of the sweep, the alerts, the planner or the prune."""

    class Trigger(models.TextChoices):
        BEAT = "beat", "Beat"
        WORKER = "worker", "A worker's parent"
        COMMAND = "command", "A command"
        CONSOLE = "console", "The console"

    job = models.TextField()
    """sweep, alerts, reconcile, prune."""
    trigger = models.TextField(choices=Trigger)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField()
    ok = models.BooleanField()
    facts: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(default=dict)

    class Meta:
        indexes = [
            models.Index(
                fields=["job", "-ended_at"], name="runs_last_good", condition=Q(ok=True)
            ),
            models.Index(fields=["-started_at"], name="runs_newest"),
        ]


class AlertRule(models.Model):
    """When somebody is woken: a measure over a scope, with watermarks and a hold time."""

    class Measure(models.TextChoices):
        OPEN_LETTERS = "open letters", "Open dead letters"
        OLDEST_LETTER = "oldest letter", "Age of the oldest open letter, seconds"
        SWEEP_LATE = "sweep late", "Seconds since the last good sweep"
        STATEMENT = "statement", "Statements absent or incomplete"
        CONSERVATION = "conservation", "Accepted events without a job"
        MONEY = "money at risk", "Worth of the open letters in one currency, major units"
        INFLOW = "inflow", "Letters buried within the last hour"
        READY = "oldest ready job", "Seconds the oldest due job has waited"
        BEAT = "beat silent", "Seconds since beat last ran anything"
        SNAPSHOT = "old snapshot", "Seconds the oldest snapshot has been held"

    public_id = columns.public_id()
    tenant = columns.tenant()
    source = models.ForeignKey(
        "reliability.Source", null=True, on_delete=models.CASCADE, related_name="alert_rules"
    )
    """``None``: each source of the tenant on its own."""
    kind = models.TextField(default="", db_default="", blank=True)
    fingerprint = models.TextField(default="", db_default="", blank=True)
    """Of the letters it looks at; empty: every one."""
    currency = models.CharField(max_length=3, default="", db_default="", blank=True)
    """Of the money it looks at."""
    name = models.CharField(max_length=120)
    measure = models.TextField(choices=Measure)
    high = models.BigIntegerField()
    low = models.BigIntegerField()
    hold_seconds = models.PositiveIntegerField()
    remind_seconds = models.PositiveIntegerField(default=14_400)
    emails: models.JSONField[list[str], list[str]] = models.JSONField(default=list)
    owner = models.CharField(max_length=120, blank=True)
    enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="low_under_high", condition=Q(low__lte=models.F("high"))
            ),
            models.CheckConstraint(
                name="money_is_of_one_currency",
                condition=~Q(measure="money at risk") | ~Q(currency=""),
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Alert(models.Model):
    """One rule at work on one scope: pending while its hold runs, then open, then resolved."""

    class Status(models.TextChoices):
        PENDING = "pending", "Holding"
        OPEN = "open", "Open"
        RESOLVED = "resolved", "Resolved"
        DROPPED = "dropped", "Cleared within its hold"

    class Withheld(models.TextChoices):
        NO = "", "told"
        SILENCED = "silenced", "Silenced"
        MUTED = "muted", "Its causes are muted"
        DRAINING = "draining", "A redrive drains it"

    public_id = columns.public_id()
    tenant = columns.tenant()
    rule = models.ForeignKey(AlertRule, on_delete=models.CASCADE, related_name="alerts")
    source = models.ForeignKey(
        "reliability.Source", null=True, on_delete=models.CASCADE, related_name="+"
    )
    status = models.TextField(choices=Status)
    since = models.DateTimeField()
    """When the condition began."""
    opened_at = models.DateTimeField(null=True)
    told_at = models.DateTimeField(null=True)
    """When its opening was written down for delivery; ``None``: nobody has heard of it."""
    withheld = models.TextField(
        choices=Withheld, default=Withheld.NO, db_default=Withheld.NO, blank=True
    )
    """Why nothing of it is delivered now."""
    withheld_until = models.DateTimeField(null=True)
    uncounted = models.BigIntegerField(default=0, db_default=0)
    """How much of ``value`` counts for no delivery: of muted causes or silenced kinds."""
    reminded_at = models.DateTimeField(null=True)
    resolved_at = models.DateTimeField(null=True)
    value = models.BigIntegerField()
    peak = models.BigIntegerField()
    facts: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(default=dict)
    """What was seen when it opened; may name a key, so it is never mailed as it is."""

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["rule", "source"], name="one_live_alert_per_scope",
                condition=Q(status__in=["pending", "open"]), nulls_distinct=False,
            ),
        ]  # fmt: skip
        indexes = [models.Index(fields=["tenant", "-since"], name="alerts_newest")]

    def __str__(self) -> str:
        return f"{self.rule}: {self.status}"


class AuditEntryQuerySet(models.QuerySet["AuditEntry"]):
    def record(  # noqa: PLR0913 - an entry names who, what, about what, and why
        self,
        tenant: Tenant,
        *,
        actor: str,
        act: str,
        about: str,
        about_id: str,
        reason: str = "",
        user_id: int | None = None,
        **facts: Any,
    ) -> AuditEntry:
        """Append one entry, in the caller's transaction: the act and its entry commit together.

        Takes an advisory lock on the tenant's chain until that transaction ends.
        """
        if not connection.in_atomic_block:
            raise transaction.TransactionManagementError("An audit entry belongs to its act.")
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [AUDIT_LOCK, tenant.pk])
        last = self.filter(tenant=tenant).order_by("-number").first()
        entry = self.model(
            tenant=tenant,
            number=last.number + 1 if last else 1,
            at=timezone.now(),
            actor=actor,
            user_id=user_id,
            act=act,
            about=about,
            about_id=about_id,
            reason=reason,
            facts=facts,
            previous_hash=bytes(last.hash) if last else bytes(32),
        )
        entry.hash = entry.digest()
        entry.save(force_insert=True)
        return entry

    def broken(self, tenant: Tenant) -> Iterator[AuditEntry]:
        """Yield every entry that does not follow from the one before it, or was changed."""
        previous, number = bytes(32), 1
        for entry in self.filter(tenant=tenant).order_by("number").iterator():
            follows = (bytes(entry.previous_hash), entry.number) == (previous, number)
            if not follows or entry.digest() != bytes(entry.hash):
                yield entry
            previous, number = bytes(entry.hash), entry.number + 1


class AuditEntry(models.Model):
    """Who did what, in a chain per tenant that shows any later change. Append-only."""

    tenant = columns.tenant()
    number = models.BigIntegerField()
    at = models.DateTimeField()
    actor = models.TextField()
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.DO_NOTHING,
        db_constraint=False, related_name="+",
    )  # fmt: skip
    act = models.TextField()
    about = models.TextField()
    """What was acted on: ``dead letter``, ``discrepancy``, ``source``, …"""
    about_id = models.TextField()
    reason = models.TextField(default="", blank=True)
    facts: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(default=dict)
    previous_hash = models.BinaryField(max_length=32)
    hash = models.BinaryField(max_length=32)

    objects = AuditEntryQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "audit entries"
        constraints = [
            models.UniqueConstraint(fields=["tenant", "number"], name="one_audit_chain"),
        ]
        indexes = [
            models.Index(fields=["about", "about_id"], name="audit_of_a_thing"),
            GinIndex(fields=["facts"], name="audit_of_a_member", opclasses=["jsonb_path_ops"]),
        ]

    def __str__(self) -> str:
        return f"{self.actor} {self.act} {self.about} {self.about_id}"

    def digest(self) -> bytes:
        """Return SHA-256 over the entry before it and everything this one says."""
        said = [
            self.tenant_id, self.number, self.at.isoformat(), self.actor, self.user_id,
            self.act, self.about, self.about_id, self.reason, self.facts,
        ]  # fmt: skip
        text = json.dumps(said, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(bytes(self.previous_hash) + text.encode()).digest()
