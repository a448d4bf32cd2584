"""Layer 3's inputs and frozen outputs: artefacts, statements, lines, reports, verdicts."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import F, Q

from reliability.models import columns


class Artefact(models.Model):
    """A file as received, kept before anybody parses it; its bytes are the parts, in order."""

    seen_again = False
    """Set by ``receive`` where these bytes had been kept before: nothing happened this time."""

    public_id = columns.public_id()
    tenant = columns.tenant()
    source = models.ForeignKey(
        "reliability.Source", on_delete=models.PROTECT, related_name="artefacts"
    )
    sha256 = models.BinaryField(max_length=32)
    size_bytes = models.BigIntegerField()
    name = models.TextField()
    received_at = models.DateTimeField()
    received_by = models.TextField()
    day = models.DateField(null=True)
    """The local day it was last given for."""
    refused = models.TextField(default="", blank=True)
    """Why it could not be read at all: file, line, rule and remedy in one sentence."""

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["source", "sha256"], name="one_artefact_per_bytes"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class ArtefactPart(models.Model):
    """At most one MiB of a file, so that nobody has to hold all of it."""

    tenant = columns.tenant(db_constraint=False, db_index=False)
    artefact = models.ForeignKey(
        Artefact, on_delete=models.CASCADE, related_name="parts", db_index=False
    )
    number = models.PositiveIntegerField()
    content = models.BinaryField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["artefact", "number"], name="one_part_per_number"),
        ]


class Statement(models.Model):
    """What one artefact says about one source and one local day."""

    public_id = columns.public_id()
    tenant = columns.tenant()
    source = models.ForeignKey(
        "reliability.Source", on_delete=models.PROTECT, related_name="statements"
    )
    artefact = models.ForeignKey(Artefact, on_delete=models.PROTECT, related_name="statements")
    statement_format = models.TextField()
    day = models.DateField()
    revision = models.PositiveIntegerField(default=1)
    sequence = models.TextField(default="", blank=True)
    declared: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(default=dict)
    computed: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(default=dict)
    quarantined: models.JSONField[list[Any], list[Any]] = models.JSONField(default=list)
    line_count = models.PositiveBigIntegerField(default=0)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["source", "day", "revision"], name="one_statement_per_revision"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.source} {self.day} r{self.revision}"


class StatementLine(models.Model):
    """One movement the provider says happened. Presentment amounts are compared."""

    tenant = columns.tenant(db_constraint=False, db_index=False)
    statement = models.ForeignKey(
        Statement, on_delete=models.CASCADE, related_name="lines", db_index=False,
        db_constraint=False,
    )  # fmt: skip
    """Written with its statement in one transaction: a look-up per line would double the cost."""
    position = models.PositiveBigIntegerField()
    identity = columns.key_text()
    """Provider id, else content hash and occurrence number: two equal rows are two."""
    provider_id = columns.key_text(null=True)
    references: models.JSONField[dict[str, str], dict[str, str]] = models.JSONField(
        default=dict
    )
    kind = models.TextField()
    operation_class = models.TextField(null=True)
    """``None``: out of scope of the compare; its total is shown."""
    reference = columns.key_text(null=True)
    amount_minor = models.BigIntegerField()
    currency = models.CharField(max_length=3)
    exponent = models.SmallIntegerField()
    settled_minor = models.BigIntegerField(null=True)
    settled_currency = models.CharField(max_length=3, null=True)
    settled_exponent = models.SmallIntegerField(null=True)
    fee_minor = models.BigIntegerField(null=True)
    net_minor = models.BigIntegerField(null=True)
    occurred_at = models.DateTimeField(null=True)
    occurred_day = models.DateField(null=True)
    booked_at = models.DateTimeField(null=True)
    booked_day = models.DateField(null=True)
    available_at = models.DateTimeField(null=True)
    available_day = models.DateField(null=True)
    batch = models.TextField(null=True)
    """The payout or batch it was settled with."""
    status = models.TextField(default="", blank=True)
    raw = models.TextField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["statement", "identity"],
                name="one_line_per_identity",
                deferrable=models.Deferrable.DEFERRED,
            ),
        ]
        indexes = [
            models.Index(
                fields=["statement", "operation_class", "reference"], name="lines_to_compare"
            ),
            models.Index(fields=["reference"], name="line_anywhere"),
        ]

    def __str__(self) -> str:
        return f"line {self.position}"


class Report(models.Model):
    """One source, one local day, one version: frozen with its inputs and its rules."""

    class Completeness(models.TextChoices):
        COMPLETE = "complete", "Complete"
        INCOMPLETE = "incomplete", "Incomplete"
        UNPROVEN = "unproven", "Unproven"
        ABSENT = "absent", "Absent"
        FORCED = "forced", "Forced"

    JUDGED = (Completeness.COMPLETE, Completeness.UNPROVEN, Completeness.FORCED)
    """Of these the verdicts stand; of the others they are withheld."""

    public_id = columns.public_id()
    tenant = columns.tenant()
    source = models.ForeignKey(
        "reliability.Source", on_delete=models.PROTECT, related_name="reports"
    )
    day = models.DateField()
    version = models.PositiveIntegerField()
    current = models.BooleanField(default=True)
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    statement = models.ForeignKey(
        Statement, null=True, on_delete=models.PROTECT, related_name="reports"
    )
    completeness = models.TextField(choices=Completeness)
    gates: models.JSONField[list[Any], list[Any]] = models.JSONField(default=list)
    counts: models.JSONField[dict[str, int], dict[str, int]] = models.JSONField(default=dict)
    bridge: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(default=dict)
    """Per currency, from their total to ours: signed minor units per verdict, ending at zero."""
    inputs_sha256 = models.BinaryField(max_length=32)
    rule_version = models.PositiveSmallIntegerField(default=1)
    created_at = models.DateTimeField()
    created_by = models.TextField()
    force_asked_by = models.TextField(default="", blank=True)
    force_reason = models.TextField(default="", blank=True)
    forced_by = models.TextField(default="", blank=True)
    """The second person; a forced report says for ever who wanted it, who agreed, and why."""
    prepared_at = models.DateTimeField(null=True)
    prepared_by = models.TextField(default="", blank=True)
    prepared_note = models.TextField(default="", blank=True)
    signed_at = models.DateTimeField(null=True)
    signed_by = models.TextField(default="", blank=True)
    signed_note = models.TextField(default="", blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["source", "day", "version"], name="one_report_per_version"
            ),
            models.UniqueConstraint(
                fields=["source", "day"], condition=Q(current=True), name="one_current_report"
            ),
            models.CheckConstraint(
                name="the_reviewer_is_not_the_preparer",
                condition=Q(prepared_by="") | ~Q(signed_by=F("prepared_by")),
            ),
            models.CheckConstraint(
                name="forcing_takes_two_people",
                condition=~Q(completeness="forced")
                | (
                    ~Q(force_asked_by="")
                    & ~Q(forced_by="")
                    & ~Q(force_reason="")
                    & ~Q(forced_by=F("force_asked_by"))
                ),
            ),
        ]
        indexes = [models.Index(fields=["tenant", "-day"], name="reports_newest")]
        permissions = [
            ("upload_statement", "Can upload statements and run the compare"),
            ("sign_report", "Can sign a day off"),
        ]

    def __str__(self) -> str:
        return f"{self.source} {self.day} v{self.version}"


class Verdict(models.Model):
    """What the compare said of one line, one operation, or a pair of them."""

    tenant = columns.tenant(db_constraint=False, db_index=False)
    report = models.ForeignKey(
        Report, on_delete=models.CASCADE, related_name="verdicts", db_index=False,
        db_constraint=False,
    )  # fmt: skip
    line = models.ForeignKey(
        StatementLine, null=True, on_delete=models.CASCADE, db_constraint=False,
        db_index=False, related_name="verdicts",
    )  # fmt: skip
    operation = models.ForeignKey(
        "reliability.Operation", null=True, on_delete=models.CASCADE, db_constraint=False,
        db_index=False, related_name="verdicts",
    )  # fmt: skip
    verdict = models.TextField()
    cause = models.TextField(default="", blank=True)
    operation_class = models.TextField(null=True)
    reference = columns.key_text(null=True)
    their_minor = models.BigIntegerField(null=True)
    our_minor = models.BigIntegerField(null=True)
    """What took effect here; ``None`` where nothing did yet."""
    currency = models.CharField(max_length=3, null=True)
    exponent = models.SmallIntegerField(null=True)
    our_currency = models.CharField(max_length=3, null=True)
    our_exponent = models.SmallIntegerField(null=True)
    """Only where ours differs from theirs."""

    class Meta:
        indexes = [
            models.Index(fields=["report", "verdict", "id"], name="verdicts_of_a_report"),
            models.Index(
                fields=["operation"],
                name="verdicts_of_an_operation",
                condition=Q(operation__isnull=False),
            ),
        ]
        constraints = [
            models.CheckConstraint(
                name="a_verdict_is_about_something",
                condition=Q(line__isnull=False) | Q(operation__isnull=False),
            ),
        ]
