"""What a compare found and a person has to close; carried from day to day."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from reliability.models import columns


class DiscrepancyQuerySet(models.QuerySet["Discrepancy"]):
    def open(self) -> DiscrepancyQuerySet:
        return self.filter(status__in=[Discrepancy.Status.OPEN, Discrepancy.Status.RECOVERING])


class Discrepancy(models.Model):
    """One disagreement with the provider: identity is source, operation and verdict family."""

    class Family(models.TextChoices):
        MISSING = "missing", "Missing"
        UNEXPECTED = "unexpected", "Unexpected"
        MISMATCH = "mismatch", "Mismatch"
        DUPLICATE = "duplicate", "Duplicate"

    class Status(models.TextChoices):
        OPEN = "open", "Open"
        RECOVERING = "recovering", "Recovering"
        RECOVERED = "recovered", "Recovered"
        RESOLVED = "resolved", "Resolved"
        IGNORED = "ignored", "Ignored"

    class Resolution(models.TextChoices):
        NONE = "", "not resolved"
        AUTOMATIC = "automatic", "The compare or a late event settled it"
        BY_HAND = "by hand", "A person settled it"

    public_id = columns.public_id()
    tenant = columns.tenant()
    source = models.ForeignKey(
        "reliability.Source", on_delete=models.PROTECT, related_name="discrepancies"
    )
    operation_class = models.TextField()
    reference = columns.key_text()
    family = models.TextField(choices=Family)
    verdict = models.TextField()
    cause = models.TextField(default="", blank=True)
    status = models.TextField(choices=Status, default=Status.OPEN)
    their_minor = models.BigIntegerField(null=True)
    our_minor = models.BigIntegerField(null=True)
    currency = models.CharField(max_length=3)
    exponent = models.SmallIntegerField()
    first_day = models.DateField()
    last_day = models.DateField()
    report = models.ForeignKey(
        "reliability.Report", on_delete=models.PROTECT, related_name="discrepancies"
    )
    """The newest report that speaks of it."""
    line = models.ForeignKey(
        "reliability.StatementLine", null=True, on_delete=models.SET_NULL, related_name="+"
    )
    job = models.ForeignKey(
        "reliability.Job", null=True, on_delete=models.SET_NULL, related_name="discrepancies"
    )
    version = models.PositiveIntegerField(default=1)
    opened_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True)
    closed_by = models.TextField(default="", blank=True)
    closed_reason = models.TextField(default="", blank=True)
    resolution = models.TextField(
        choices=Resolution, default=Resolution.NONE, db_default=Resolution.NONE, blank=True
    )
    ignored_until = models.DateField(null=True)
    """The last local day on which it stays out of the open list."""
    owner = models.TextField(default="", blank=True)
    recover_asked_by = models.TextField(default="", blank=True)
    """Above the limit a second person is needed: this is the first."""

    objects = DiscrepancyQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "discrepancies"
        constraints = [
            models.UniqueConstraint(
                fields=["source", "operation_class", "reference", "family"],
                name="one_discrepancy_per_disagreement",
            ),
        ]
        indexes = [
            models.Index(
                fields=["tenant", "-last_day"],
                name="discrepancies_open",
                condition=Q(status__in=["open", "recovering"]),
            ),
        ]
        permissions = [("recover_discrepancy", "Can recover what never arrived")]

    def __str__(self) -> str:
        return f"{self.verdict} {self.operation_class} {self.reference}"
