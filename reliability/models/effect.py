"""The effect ledger: marks of single outside effects, for a downstream that rejects no repeat."""

from __future__ import annotations

from typing import Any

from django.db import models

from reliability.models import columns


class Effect(models.Model):
    """One named effect of one job: begun, and confirmed with its answer once that is known."""

    tenant = columns.tenant(db_constraint=False, db_index=False)
    job = models.ForeignKey(
        "reliability.Job", on_delete=models.CASCADE, related_name="effects", db_index=False
    )
    name = models.TextField()
    downstream_key = models.TextField()
    round = models.IntegerField()
    """The round that began it last: a person's requeue may begin an unconfirmed one again."""
    token = models.BigIntegerField()
    begun_at = models.DateTimeField()
    confirmed_at = models.DateTimeField(null=True)
    result: models.JSONField[Any, Any] = models.JSONField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["job", "name"], name="one_mark_per_effect"),
        ]

    def __str__(self) -> str:
        return f"{self.name} of job {self.job_id}"
