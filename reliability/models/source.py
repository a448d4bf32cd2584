"""Where events come from and who may look at them."""

from __future__ import annotations

import secrets
from datetime import datetime, time
from typing import Any

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models
from django.db.models import Q

from reliability.models import columns, sealing


def endpoint_token() -> str:
    """Return 192 random bits for the URL: alone, it decides tenant and source."""
    return secrets.token_urlsafe(24)


class Tenant(models.Model):
    public_id = columns.public_id()
    slug = models.SlugField(max_length=60, unique=True)
    name = models.CharField(max_length=120)
    created_at = models.DateTimeField(auto_now_add=True)
    morning_at = models.TimeField(null=True, default=time(8), db_default=time(8))
    """Local time of the morning mail; ``None``: none is sent."""
    morning_zone = models.CharField(max_length=64, default="", db_default="", blank=True)
    """Empty: the zone of the tenant's first source."""

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """One person's role in one tenant; the role is a shipped group and brings its permissions."""

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships"
    )
    role = models.ForeignKey(Group, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "user"], name="one_role_per_member"),
        ]


class Source(models.Model):
    """A tenant's account at one provider, live or test; or the inside of one kind of own job."""

    class Mode(models.TextChoices):
        LIVE = "live", "Live"
        TEST = "test", "Test"

    class Answer(models.TextChoices):
        AT_ONCE = "at once", "Once claimed"
        AFTER_WORK = "after work", "Once worked"

    public_id = columns.public_id()
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="sources")
    slug = models.CharField(max_length=120)
    preset = models.CharField(max_length=40, blank=True)
    scheme = models.CharField(max_length=40, blank=True)
    internal = models.BooleanField(default=False)
    destination = models.ForeignKey(
        "reliability.Destination", null=True, on_delete=models.PROTECT, related_name="sources"
    )
    """Takes the events that no route sends to a handler of ours."""
    answer = models.TextField(
        choices=Answer, default=Answer.AT_ONCE, db_default=Answer.AT_ONCE
    )
    """Whether a delivery is answered once it is claimed, or once it is worked."""
    hold_replays = models.BooleanField(default=False, db_default=False)
    """Whether an equal body under a new unsigned id waits for a person, as a letter."""
    mode = models.CharField(max_length=4, choices=Mode, default=Mode.LIVE)
    account = models.CharField(max_length=120, blank=True)
    endpoint_token = models.CharField(max_length=64, unique=True, default=endpoint_token)
    options: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(default=dict)
    """Of the scheme: header names, tolerance, …"""
    routes: models.JSONField[dict[str, str], dict[str, str]] = models.JSONField(default=dict)
    """Event type to kind, where it is not ``<scheme>.<event type>``."""
    operation_rules: models.JSONField[list[dict[str, Any]], list[dict[str, Any]]] = (
        models.JSONField(default=list)
    )
    """Operation rules of its own, asked before its preset's: fields of ``OperationRule``."""
    body_bytes_max = models.PositiveIntegerField(null=True)
    zone = models.CharField(max_length=64, default="UTC")
    statement_format = models.CharField(max_length=60, blank=True)
    statement_options: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(
        default=dict
    )
    statement_kinds: models.JSONField[list[str], list[str]] = models.JSONField(default=list)
    """Operation classes in scope of the daily compare; empty: none, no report is due."""
    statement_deadline_hours = models.PositiveSmallIntegerField(default=12)
    """Hours after the local day's end by which its statement is expected."""
    grace_hours = models.PositiveSmallIntegerField(default=2)
    """How long after its time an operation of ours may be absent from their statement."""
    paused_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "slug"], name="one_source_per_slug"),
            models.CheckConstraint(
                name="a_door_has_a_scheme", condition=Q(internal=True) | ~Q(scheme="")
            ),
        ]

    def __str__(self) -> str:
        return self.slug


class SourceSecretQuerySet(models.QuerySet["SourceSecret"]):
    def valid(self, now: datetime) -> SourceSecretQuerySet:
        return self.filter(Q(expires_at=None) | Q(expires_at__gt=now)).order_by("-pk")

    def rotate(self, source: Source, secret: str, *, overlap_until: datetime) -> SourceSecret:
        """Make ``secret`` current; the one before it stays valid until ``overlap_until``."""
        if not secret:
            raise ValueError(
                "A signing secret cannot be empty: the door would accept anybody."
            )
        self.filter(source=source, expires_at=None).update(expires_at=overlap_until)
        return self.create(
            tenant_id=source.tenant_id,
            source=source,
            sealed=sealing.seal(secret, about=_about(source)),
            last_four=secret[-4:],
        )


def _about(source: Source) -> str:
    return f"{source.tenant_id}|{source.pk}|signing secret"


class SourceSecret(models.Model):
    """A signing secret, sealed; the current one has no expiry, the previous one has."""

    tenant = columns.tenant()
    source = models.ForeignKey(Source, on_delete=models.CASCADE, related_name="secrets")
    sealed = models.BinaryField()
    last_four = models.CharField(max_length=4)
    expires_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = SourceSecretQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["source"], condition=Q(expires_at=None), name="one_current_secret"
            ),
        ]

    def open(self) -> str:
        """Return the secret itself. For verifying and signing only; never shown again."""
        return sealing.unseal(bytes(self.sealed), about=_about(self.source))


class ApiCredential(models.Model):
    """What we show the provider's API when we ask it something: a key, or ``id:secret``."""

    tenant = columns.tenant()
    source = models.OneToOneField(
        Source, on_delete=models.CASCADE, related_name="api_credential"
    )
    sealed = models.BinaryField()
    last_four = models.CharField(max_length=4)
    created_at = models.DateTimeField(auto_now_add=True)

    @classmethod
    def keep(cls, source: Source, text: str) -> ApiCredential:
        """Seal a source's credential in place of the one before."""
        if not text.strip():
            raise ValueError("An API credential cannot be empty.")
        facts = {
            "tenant_id": source.tenant_id,
            "sealed": sealing.seal(text, about=_api(source)),
            "last_four": text[-4:],
        }
        return cls.objects.update_or_create(source=source, defaults=facts)[0]

    def open(self) -> str:
        """Return the credential itself. For asking the provider only; never shown again."""
        return sealing.unseal(bytes(self.sealed), about=_api(self.source))


def _api(source: Source) -> str:
    return f"{source.tenant_id}|{source.pk}|api credential"
