"""Kinds that a person paused: their jobs wait, held, until somebody lets them go on."""

from __future__ import annotations

from django.db import models

from reliability.models import columns


class KindPause(models.Model):
    """One kind of one tenant, paused; the row goes when the pause ends."""

    tenant = columns.tenant()
    kind = models.TextField()
    paused_at = models.DateTimeField()
    paused_by = models.TextField()
    reason = models.TextField(default="", blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "kind"], name="one_pause_per_kind"),
        ]
        permissions = [("pause_work", "Can pause and resume kinds and destinations")]

    def __str__(self) -> str:
        return f"{self.kind} is paused"
