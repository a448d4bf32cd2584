"""Layer 1's ledger: keys, operations, and what each delivery brought."""

from __future__ import annotations

import uuid
from typing import Any

from django.apps import apps
from django.contrib.postgres.functions import RandomUUID
from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models import Exists, F, OuterRef, Q

from reliability.models import columns

PURGED = Q(purged_at__isnull=False)


class ProcessedKeyQuerySet(models.QuerySet["ProcessedKey"]):
    """Conservation: accepted = purged + the jobs there are. Keys are never deleted."""

    def accepted(self) -> ProcessedKeyQuerySet:
        """Choose the keys that were to be worked; an absorbed one is its operation's duplicate."""
        return self.filter(absorbed=False)

    def lost(self) -> ProcessedKeyQuerySet:
        """Choose accepted keys no job speaks for, though none was purged: there must be none."""
        job = apps.get_model("reliability", "Job").objects.filter(key=OuterRef("pk"))
        return self.accepted().exclude(PURGED).exclude(Exists(job))


class ProcessedKey(models.Model):
    """One event key, claimed once and kept as long as its source."""

    tenant = columns.tenant(db_constraint=False, db_index=False)
    source = models.ForeignKey(
        "reliability.Source", on_delete=models.PROTECT, related_name="keys", db_index=False
    )
    key = columns.key_text()
    kind = models.TextField()
    downstream_key = models.TextField()
    operation_class = models.TextField(null=True)
    operation_reference = columns.key_text(null=True)
    amount_minor = models.BigIntegerField(null=True)
    currency = models.CharField(max_length=3, null=True)
    exponent = models.SmallIntegerField(null=True)
    absorbed = models.BooleanField(default=False, db_default=False)
    """Its operation was claimed by another key: no job, no work, shown in both traces."""
    unconfirmed = models.BooleanField(default=False, db_default=False)
    """Its signature does not bind its body: no handler runs before the provider confirmed it."""
    occurred_at = models.DateTimeField(null=True)
    asked_by = models.TextField(default="", db_default="")
    body_sha256 = models.BinaryField(max_length=32)
    claimed_at = models.DateTimeField()
    erased_at = models.DateTimeField(null=True)
    """A person's data was erased from its body and all that came of it; the claim stays."""
    purged_at = models.DateTimeField(null=True)
    done_at = models.DateTimeField(null=True)
    """When its job was done, noted as the job was purged: what a repeat is told then."""

    objects = ProcessedKeyQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "source", "key"], name="one_claim_per_key"
            ),
            models.CheckConstraint(
                name="absorbed_has_operation",
                condition=Q(absorbed=False) | Q(operation_class__isnull=False),
            ),
        ]
        indexes = [
            models.Index(fields=["key"], name="key_anywhere"),
            models.Index(fields=["kind", "-id"], name="keys_of_a_kind"),
            models.Index(
                fields=["downstream_key"],
                name="downstream_key_anywhere",
                condition=~Q(downstream_key=F("key")),
            ),
            models.Index(
                fields=["source", "operation_class", "operation_reference"],
                name="keys_of_an_operation",
                condition=Q(operation_class__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return self.key


class Operation(models.Model):
    """What is being done to the world, once: this charge, this refund."""

    tenant = columns.tenant(db_constraint=False, db_index=False)
    source = models.ForeignKey(
        "reliability.Source",
        on_delete=models.PROTECT,
        related_name="operations",
        db_index=False,
    )
    operation_class = models.TextField()
    reference = columns.key_text()
    key = models.OneToOneField(
        ProcessedKey, on_delete=models.PROTECT, db_constraint=False, related_name="operation"
    )
    """Constrained by migration 0002, at the statement's end: see sql/claim_events.sql."""
    amount_minor = models.BigIntegerField(null=True)
    currency = models.CharField(max_length=3, null=True)
    exponent = models.SmallIntegerField(null=True)
    occurred_at = models.DateTimeField()
    batch = columns.key_text(null=True)
    """The payout or batch it is settled with, where a statement lists that as one."""

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "source", "operation_class", "reference"],
                name="one_claim_per_operation",
            ),
        ]
        indexes = [
            models.Index(fields=["source", "occurred_at"], name="operations_of_a_day"),
            models.Index(fields=["reference"], name="operation_anywhere"),
            models.Index(
                fields=["source", "batch"],
                name="operations_of_a_batch",
                condition=models.Q(batch__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.operation_class} {self.reference}"


class Body(models.Model):
    """The bytes of an event as received; the truth. Own retention, the ledger outlives it."""

    tenant = columns.tenant(db_constraint=False, db_index=False)
    key = models.ForeignKey(ProcessedKey, on_delete=models.CASCADE, related_name="bodies")
    raw = models.BinaryField()
    headers: models.JSONField[dict[str, str], dict[str, str]] = models.JSONField(default=dict)
    sha256 = models.BinaryField(max_length=32)
    first = models.BooleanField(default=True, db_default=True)
    """The bytes the job works on; later, different bytes of the same key are kept beside it."""
    replayable = models.BooleanField(default=False, db_default=False)
    """Its identity lay outside the signature: the same bytes could be sent under a new one."""
    created_at = models.DateTimeField()

    class Meta:
        indexes = [
            models.Index(fields=["created_at"], name="bodies_by_age"),
            models.Index(
                fields=["sha256"], name="bodies_replayable", condition=Q(replayable=True)
            ),
        ]


class Delivery(models.Model):
    """One authenticated HTTP request carrying events; may repeat."""

    public_id = models.UUIDField(default=uuid.uuid4, db_default=RandomUUID(), editable=False)
    tenant = columns.tenant(db_constraint=False, db_index=False)
    source = models.ForeignKey(
        "reliability.Source",
        on_delete=models.PROTECT,
        related_name="deliveries",
        db_index=False,
    )
    received_at = models.DateTimeField()
    peer = models.GenericIPAddressField(null=True)
    size_bytes = models.PositiveIntegerField()
    sha256 = models.BinaryField(max_length=32)
    answer = models.PositiveSmallIntegerField()
    scheme = models.TextField()
    secret = models.ForeignKey(
        "reliability.SourceSecret", null=True, on_delete=models.DO_NOTHING,
        db_constraint=False, db_index=False, related_name="+",
    )  # fmt: skip
    verifier_version = models.PositiveSmallIntegerField(default=1, db_default=1)
    signed_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name_plural = "deliveries"
        indexes = [models.Index(fields=["source", "-received_at"], name="deliveries_recent")]


class Receipt(models.Model):
    """What one delivery (or one call of ``enqueue``) did to one key."""

    class Verdict(models.TextChoices):
        ACCEPTED = "accepted", "Accepted"
        DUPLICATE = "duplicate", "Duplicate"
        ABSORBED = "absorbed", "Already applied"
        CONFLICT = "conflict", "Conflict"

    tenant = columns.tenant(db_constraint=False, db_index=False)
    source = models.ForeignKey(
        "reliability.Source",
        on_delete=models.PROTECT,
        related_name="+",
        db_constraint=False,
        db_index=False,
    )
    """The key's, kept here so that a source's receipts are read without reading all others'."""
    key = models.ForeignKey(ProcessedKey, on_delete=models.CASCADE, related_name="receipts")
    delivery = models.ForeignKey(
        Delivery, null=True, on_delete=models.CASCADE, related_name="receipts"
    )
    verdict = models.TextField(choices=Verdict)
    suspected_replay = models.BooleanField(default=False, db_default=False)
    """An equal body came under another key before: it runs, its operation still protects."""
    differs: models.JSONField[dict[str, Any] | None, dict[str, Any] | None] = models.JSONField(
        null=True
    )
    """For a conflict: what this delivery claimed, where the first claim differs."""
    at = models.DateTimeField()

    class Meta:
        indexes = [
            BrinIndex(fields=["at"], name="receipts_by_time"),
            models.Index(fields=["tenant", "source", "-id"], name="receipts_of_a_source"),
            models.Index(
                fields=["tenant", "verdict", "-id"],
                name="receipts_of_repeats",
                condition=~Q(verdict="accepted"),
            ),
            models.Index(
                fields=["tenant", "-id"],
                name="receipts_suspected",
                condition=Q(suspected_replay=True),
            ),
        ]


class Refusal(models.Model):
    """Requests the door turned away, counted by reason and hour; their bodies are not kept."""

    tenant = columns.tenant()
    source = models.ForeignKey(
        "reliability.Source", on_delete=models.CASCADE, related_name="refusals"
    )
    reason = models.CharField(max_length=120)
    hour = models.DateTimeField()
    count = models.PositiveBigIntegerField()
    last_at = models.DateTimeField()
    last_size_bytes = models.PositiveBigIntegerField()
    last_sha256 = models.BinaryField(max_length=32)
    last_peer = models.GenericIPAddressField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["source", "reason", "hour"], name="one_counter_per_reason_and_hour"
            ),
        ]
