"""Mails owed to the people who asked for jobs that failed."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from reliability.models import columns


class Notice(models.Model):
    """One job's first failure, to be told to the person who asked for it; written with it."""

    tenant = columns.tenant(db_constraint=False, db_index=False)
    job = models.OneToOneField(
        "reliability.Job", on_delete=models.CASCADE, related_name="notice"
    )
    email = models.TextField()
    tries = models.PositiveSmallIntegerField(default=0, db_default=0)
    due_at = models.DateTimeField()
    sent_at = models.DateTimeField(null=True)
    error = models.TextField(default="", db_default="", blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["due_at"], name="notices_due", condition=Q(sent_at=None)),
        ]

    def __str__(self) -> str:
        return f"job {self.job_id} to {self.email}"
