"""Where alerts go besides mail, by addresses that are secrets; and each message to anywhere."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from django.db import models
from django.db.models import Q

from reliability.models import columns, sealing
from reliability.models.watch import Alert, AlertRule

WEBHOOK = "webhook"
KEY = "channel "


@dataclass(frozen=True)
class Secrets:
    """What a channel keeps sealed: where it is, and what a webhook is signed with."""

    address: str
    signing: str = ""


class AlertChannelQuerySet(models.QuerySet["AlertChannel"]):
    def standing(self) -> AlertChannelQuerySet:
        """Those that were not removed."""
        return self.filter(removed_at=None)


class AlertChannel(models.Model):
    """Where alerts go besides mail, and which rules tell it."""

    public_id = columns.public_id()
    tenant = columns.tenant()
    name = models.CharField(max_length=60)
    scheme = models.CharField(max_length=20)
    """``webhook``, or the scheme of a chat or pager: ``slack``, ``pagerduty``, …"""
    shown = models.CharField(max_length=300)
    """What may be seen of the address."""
    sealed_address = models.BinaryField()
    """Empty once removed, and so is the signing secret."""
    sealed_signing = models.BinaryField(default=b"")
    last_four = models.CharField(max_length=4, default="", blank=True)
    """Of the signing secret; empty where nothing is signed."""
    rules = models.ManyToManyField(AlertRule, related_name="channels")
    created_at = models.DateTimeField()
    created_by = models.TextField()
    removed_at = models.DateTimeField(null=True)

    objects = AlertChannelQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "name"],
                condition=Q(removed_at=None),
                name="one_channel_per_name",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.shown})"

    @property
    def key(self) -> str:
        """What stands for it where a delivery names its address; no secret."""
        return f"{KEY}{self.public_id}"

    @property
    def is_webhook(self) -> bool:
        return self.scheme == WEBHOOK

    def seal(self, secrets: Secrets) -> None:
        """Put the secrets in; not saved. Needs the id the channel will have."""
        self.sealed_address = sealing.seal(secrets.address, about=self._about("address"))
        if secrets.signing:
            self.sealed_signing = sealing.seal(secrets.signing, about=self._about("signing"))
            self.last_four = secrets.signing[-4:]

    def open(self) -> Secrets:
        """Return the secrets. For sending only. Raises ``CannotUnseal``."""
        address = sealing.unseal(bytes(self.sealed_address), about=self._about("address"))
        if not self.sealed_signing:
            return Secrets(address)
        signing = sealing.unseal(bytes(self.sealed_signing), about=self._about("signing"))
        return Secrets(address, signing)

    def _about(self, field: str) -> str:
        return f"{self.tenant_id}|{self.public_id}|channel {field}"


class AlertDelivery(models.Model):
    """One message to one address; written with what it tells of, sent afterwards."""

    class Status(models.TextChoices):
        PENDING = "pending", "Pending"
        SENT = "sent", "Sent"
        FAILED = "failed", "Failed"

    tenant = columns.tenant()
    alert = models.ForeignKey(
        Alert, null=True, on_delete=models.CASCADE, related_name="deliveries"
    )
    """``None``: a morning mail or a test."""
    occasion = models.TextField()
    """opened, reminder 1, reminder 2, …, resolved; morning <day>; test <number>."""
    email = models.TextField()
    """The mail address, or the key of the channel it goes by."""
    channel = models.ForeignKey(
        AlertChannel, null=True, on_delete=models.CASCADE, related_name="+"
    )
    """``None``: by mail."""
    value = models.BigIntegerField()
    counted_at = models.DateTimeField()
    """When ``value`` was counted: a mail that waited still says of which moment it speaks."""
    status = models.TextField(choices=Status, default=Status.PENDING)
    tries = models.PositiveSmallIntegerField(default=0)
    due_at = models.DateTimeField()
    error = models.TextField(default="", blank=True)
    sent_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name_plural = "alert deliveries"
        constraints = [
            models.UniqueConstraint(
                fields=["alert", "occasion", "email"], name="one_message_per_occasion"
            ),
            models.UniqueConstraint(
                fields=["tenant", "occasion", "email"],
                condition=Q(alert=None),
                name="one_mail_per_morning",
            ),
        ]
        indexes = [
            models.Index(
                fields=["due_at"], name="messages_due", condition=Q(status="pending")
            ),
            models.Index(
                fields=["email", "-sent_at"], name="messages_sent", condition=Q(status="sent")
            ),
        ]
        permissions = [("send_test", "Can send a test to where alerts go")]

    @property
    def to(self) -> str:
        """Where it goes, in words that give no secret away."""
        return str(self.channel) if self.channel else self.email


def public_id_in(key: str) -> uuid.UUID | None:
    """Return the id in a channel's key; ``None`` for a mail address and anything else."""
    try:
        return uuid.UUID(key.removeprefix(KEY)) if key.startswith(KEY) else None
    except ValueError:
        return None
