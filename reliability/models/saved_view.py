"""Filters people keep under a name."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from reliability.models import columns


class SavedView(models.Model):
    """A page's filter under a name: one person's own, or shared in the tenant."""

    public_id = columns.public_id()
    tenant = columns.tenant()
    page = models.CharField(max_length=40)
    """The route's name: ``dead_letters``."""
    name = models.CharField(max_length=60)
    query = models.TextField()
    """The query string, read anew at each opening: it is refused once a filter is gone."""
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+"
    )
    shared = models.BooleanField(default=False, db_default=False)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "page", "name"], name="one_shared_view_per_name",
                condition=Q(shared=True),
            ),
            models.UniqueConstraint(
                fields=["tenant", "owner", "page", "name"], name="one_own_view_per_name",
                condition=Q(shared=False),
            ),
        ]  # fmt: skip

    def __str__(self) -> str:
        return self.name
