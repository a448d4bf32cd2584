"""The key ledger counted piece by piece, so that conservation never reads all of it at once."""

from __future__ import annotations

from datetime import datetime

from django.db import models
from django.db.models import F, Max

from reliability.models import columns

KEYS = 20_000
"""Key ids of one stretch."""
STATES = ("ready", "running", "done", "dead", "discarded", "resolved")


class StretchQuerySet(models.QuerySet["Stretch"]):
    def newest(self) -> int:
        """Return the number of the last stretch counted, -1 before the first.

        Keys from ``(number + 1) * KEYS`` on stand in none yet.
        """
        found: int | None = self.aggregate(number=Max("number"))["number"]
        return -1 if found is None else found

    def broken(self) -> StretchQuerySet:
        """Choose those with accepted keys that no job speaks for."""
        spoken_for = sum((F(state) for state in STATES), F("purged"))
        return self.annotate(missing=F("accepted") - spoken_for).exclude(missing=0)


class Stretch(models.Model):
    """The accepted keys of one source among ``KEYS`` neighbouring ids, counted with their jobs."""

    tenant = columns.tenant()
    source = models.ForeignKey(
        "reliability.Source", on_delete=models.CASCADE, related_name="stretches"
    )
    number = models.BigIntegerField()
    """The id of its keys over ``KEYS``, rounded down."""
    accepted = models.IntegerField()
    purged = models.IntegerField()
    ready = models.IntegerField()
    running = models.IntegerField()
    done = models.IntegerField()
    dead = models.IntegerField()
    discarded = models.IntegerField()
    resolved = models.IntegerField()
    counted_at: models.DateTimeField[datetime, datetime] = models.DateTimeField()

    objects = StretchQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "stretches"
        constraints = [
            models.UniqueConstraint(
                fields=["number", "source"], name="one_count_per_stretch_and_source"
            ),
        ]
        indexes = [models.Index(fields=["counted_at"], name="stretches_to_count")]

    def __str__(self) -> str:
        return f"keys from {self.number * KEYS}"
