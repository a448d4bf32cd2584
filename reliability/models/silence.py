"""When nobody is to be woken: planned, for a reason, and never for ever."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import models
from django.db.models import F, Q

from reliability.models import columns

SILENCE_MAX = timedelta(days=30)


class SilenceQuerySet(models.QuerySet["Silence"]):
    def active(self, now: datetime) -> SilenceQuerySet:
        return self.filter(ended_at=None, from_at__lte=now, until_at__gt=now)

    def standing(self, now: datetime) -> SilenceQuerySet:
        """Choose those in force and those to come."""
        return self.filter(ended_at=None, until_at__gt=now)

    def over(self, now: datetime) -> SilenceQuerySet:
        return self.filter(Q(until_at__lte=now) | Q(ended_at__isnull=False))


class Silence(models.Model):
    """A window in which alerts open and resolve, and nothing of them is delivered."""

    public_id = columns.public_id()
    tenant = columns.tenant()
    source = models.ForeignKey(
        "reliability.Source", null=True, on_delete=models.CASCADE, related_name="silences"
    )
    """``None``: the whole tenant."""
    kind = models.TextField(default="", db_default="", blank=True)
    """Letters of this kind count for no delivery; empty: the alert as a whole is silent."""
    rule = models.ForeignKey(
        "reliability.AlertRule", null=True, on_delete=models.CASCADE, related_name="silences"
    )
    """``None``: every rule."""
    from_at = models.DateTimeField()
    until_at = models.DateTimeField()
    reason = models.TextField()
    created_by = models.TextField()
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    """When somebody ended it before its time."""
    ended_by = models.TextField(default="", db_default="", blank=True)

    objects = SilenceQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="a_silence_ends_within_thirty_days",
                condition=Q(until_at__gt=F("from_at"))
                & Q(until_at__lte=F("from_at") + SILENCE_MAX),
            ),
            models.CheckConstraint(name="a_silence_has_a_reason", condition=~Q(reason="")),
        ]
        indexes = [models.Index(fields=["tenant", "-until_at"], name="silences_newest")]

    def __str__(self) -> str:
        return f"until {self.until_at:%Y-%m-%d %H:%M}: {self.reason}"

    def covers(self, rule_id: int, kind: str, source_id: int | None) -> bool:
        """Tell whether it silences a rule's alert on a source as a whole."""
        return (
            self.source_id in {None, source_id}
            and self.rule_id in {None, rule_id}
            and self.kind in {"", kind}
        )
