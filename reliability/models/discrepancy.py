"""What a compare found and a person has to close; carried from day to day."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q

from reliability.models import columns


class IgnoreRule(models.Model):
    """What nobody needs to look at, for a while: a class and kind of difference, up to an amount."""

    public_id = columns.public_id()
    tenant = columns.tenant()
    source = models.ForeignKey(
        "reliability.Source", on_delete=models.CASCADE, related_name="ignore_rules"
    )
    name = models.CharField(max_length=120)
    family = models.TextField()
    operation_class = models.TextField()
    starts_with = columns.key_text(default="", db_default="", blank=True)
    """Of the reference; empty: any."""
    amount_minor_max = models.BigIntegerField(null=True)
    """The largest difference in minor units, without its sign; ``None``: any."""
    currency = models.CharField(max_length=3, blank=True, default="", db_default="")
    reason = models.TextField()
    until = models.DateField()
    """The last local day it applies to. A rule always ends."""
    created_by = models.TextField()
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    ended_by = models.TextField(default="", db_default="", blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="a_rule_of_an_amount_names_its_currency",
                condition=Q(amount_minor_max=None) | ~Q(currency=""),
            ),
        ]

    def __str__(self) -> str:
        return self.name


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
    owner = models.TextField(default="", db_default="", blank=True)
    needs_two = models.BooleanField(default=False, db_default=False)
    """It is worth more than one person may recover alone; the database holds to it."""
    recover_asked_by = models.TextField(default="", db_default="", blank=True)
    recovered_by = models.TextField(default="", db_default="", blank=True)
    rule = models.ForeignKey(
        "reliability.IgnoreRule", null=True, on_delete=models.SET_NULL, related_name="ignored"
    )
    """The rule that took it off the open list."""

    objects = DiscrepancyQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "discrepancies"
        constraints = [
            models.UniqueConstraint(
                fields=["source", "operation_class", "reference", "family"],
                name="one_discrepancy_per_disagreement",
            ),
            models.CheckConstraint(
                name="large_recoveries_take_two_people",
                condition=Q(needs_two=False)
                | ~Q(status__in=["recovering", "recovered"])
                | (
                    ~Q(recover_asked_by="")
                    & ~Q(recovered_by="")
                    & ~Q(recovered_by=F("recover_asked_by"))
                ),
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
