"""Where a source's events are sent when no Python of ours works them, and what came back."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime, timedelta
from typing import Any

from django.db import models
from django.db.models import Q
from django.utils import timezone

from reliability.models import columns, sealing
from reliability.models.source import Tenant

CONCURRENCY_MAX = 64
TOKEN_BYTES = 32
USE_NOTED_EVERY = timedelta(minutes=1)
"""Use of a token is written down no more often than this."""


class Destination(models.Model):
    """A URL that takes a source's events, with the state of its breaker."""

    public_id = columns.public_id()
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="destinations")
    slug = models.CharField(max_length=60)
    url = models.CharField(max_length=2_000)
    sealed = models.BinaryField()
    """The Standard Webhooks secret we sign with."""
    last_four = models.CharField(max_length=4)
    concurrency_max = models.PositiveSmallIntegerField(default=8)
    """Requests under way at once, over all workers."""
    completion_seconds = models.PositiveIntegerField(default=3_600)
    """How long after a 202 its completion is waited for."""
    rules: models.JSONField[dict[str, str], dict[str, str]] = models.JSONField(default=dict)
    """Status to ``done``, ``retry`` or ``bury``, where the shipped rule is not wanted."""
    failures = models.PositiveIntegerField(default=0, db_default=0)
    """In a row; what opens the breaker."""
    open_until = models.DateTimeField(null=True)
    """While this lies ahead nothing is sent; then one request tries."""
    paused_at = models.DateTimeField(null=True)
    """Set by a person: what would be sent here is held until the pause ends."""
    paused_by = models.TextField(default="", db_default="", blank=True)
    pause_reason = models.TextField(default="", db_default="", blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "slug"], name="one_destination_per_slug"
            ),
            models.CheckConstraint(
                name="concurrency_is_sane",
                condition=Q(concurrency_max__gte=1, concurrency_max__lte=CONCURRENCY_MAX),
            ),
        ]

    def __str__(self) -> str:
        return self.slug

    def seal(self, secret: str) -> None:
        """Put a signing secret in; not saved. Needs the id the destination will have."""
        self.sealed = sealing.seal(secret, about=self._about())
        self.last_four = secret[-4:]

    def open(self) -> str:
        """Return the signing secret itself. For signing only; shown once, when it was made."""
        return sealing.unseal(bytes(self.sealed), about=self._about())

    def _about(self) -> str:
        return f"{self.tenant_id}|{self.public_id}|destination secret"


class DestinationAnswer(models.Model):
    """What a destination answered to one start of a job. Its body is hostile: show it as text."""

    tenant = columns.tenant(db_constraint=False, db_index=False)
    job = models.ForeignKey(
        "reliability.Job", on_delete=models.CASCADE, related_name="answers"
    )
    token = models.BigIntegerField()
    """The start it answers, as its attempt names it."""
    status = models.PositiveSmallIntegerField()
    size_bytes = models.PositiveIntegerField()
    """Of what was read: at most 64 KiB."""
    cut = models.BooleanField(default=False)
    sha256 = models.BinaryField(max_length=32)
    body = models.BinaryField()
    at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["at"], name="answers_by_age")]

    def text(self, characters_max: int = 2_000) -> str:
        """Return the body's beginning as text for escaping; what is no UTF-8 is marked."""
        return bytes(self.body).decode("utf-8", "replace")[:characters_max]


class ApiTokenQuerySet(models.QuerySet["ApiToken"]):
    def unrevoked(self, tenant: Tenant) -> ApiTokenQuerySet:
        """Choose the tokens whose names are taken, those past their time too."""
        return self.filter(tenant=tenant, revoked_at=None)


class ApiToken(models.Model):
    """A caller of our HTTP API: one tenant's, kept as a digest, shown once."""

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=60)
    sha256 = models.BinaryField(max_length=32, unique=True)
    last_four = models.CharField(max_length=4)
    created_at = models.DateTimeField(auto_now_add=True)
    revoked_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)
    """To the minute."""

    objects = ApiTokenQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "name"],
                condition=Q(revoked_at=None),
                name="one_live_token_per_name",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @classmethod
    def issue(cls, tenant: Tenant, name: str, *, expires_at: datetime | None = None) -> str:
        """Make a token and return its text, which is not kept."""
        text = f"rel_{secrets.token_urlsafe(TOKEN_BYTES)}"
        cls.objects.create(
            tenant=tenant, name=name, sha256=_digest(text), last_four=text[-4:],
            expires_at=expires_at,
        )  # fmt: skip
        return text

    @classmethod
    def holder(cls, text: str) -> Tenant | None:
        """Return whose token this is, noting its use; ``None`` where it is unknown or over."""
        now = timezone.now()
        live = cls.objects.filter(Q(expires_at=None) | Q(expires_at__gt=now), revoked_at=None)
        token = live.select_related("tenant").filter(sha256=_digest(text)).first()
        if token is None:
            return None
        noted = token.last_used_at
        if noted is None or now - noted >= USE_NOTED_EVERY:
            cls.objects.filter(pk=token.pk).update(last_used_at=now)
        return token.tenant


def _digest(text: str) -> bytes:
    # 256 random bits need no slow hash, and are looked up by this.
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def rules_error(rules: Any) -> str:
    """Say what is wrong with a destination's status rules, or an empty string."""
    for status, then in rules.items():
        if not (status.isascii() and status.isdigit() and 200 <= int(status) <= 599):  # noqa: PLR2004 - the statuses there are
            return f"{status!r} is no HTTP status from 200 to 599"
        if then not in {"done", "retry", "bury"}:
            return f"{status}: say done, retry or bury, not {then!r}"
    return ""
