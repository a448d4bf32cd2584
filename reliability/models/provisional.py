"""What a provider was asked about before its statement: provisional, the statement decides."""

from __future__ import annotations

from datetime import datetime

from django.db import models
from django.db.models import Q

from reliability.models import columns


class ProvisionalCheckQuerySet(models.QuerySet["ProvisionalCheck"]):
    def good(self) -> ProvisionalCheckQuerySet:
        return self.filter(why="")

    def since(self, at: datetime) -> ProvisionalCheckQuerySet:
        return self.filter(asked_at__gte=at)


class ProvisionalCheck(models.Model):
    """One question to a provider about the events it could not deliver, and what came of it."""

    tenant = columns.tenant()
    source = models.ForeignKey(
        "reliability.Source", on_delete=models.CASCADE, related_name="provisional_checks"
    )
    asked_at = models.DateTimeField()
    from_at = models.DateTimeField()
    """The span asked about ends at ``asked_at``."""
    accepted = models.PositiveIntegerField(default=0)
    """Events that had not arrived: taken in by this check."""
    known = models.PositiveIntegerField(default=0)
    """Events it listed as undelivered that were here already."""
    why = models.TextField(default="", blank=True)
    """Why the provider could not be asked; empty: it answered."""

    objects = ProvisionalCheckQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["source", "-asked_at"], name="provisional_checks_newest"),
            models.Index(
                fields=["source", "-asked_at"], name="provisional_checks_good",
                condition=Q(why=""),
            ),
            models.Index(fields=["asked_at"], name="provisional_checks_oldest"),
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"{self.source_id} at {self.asked_at}"
