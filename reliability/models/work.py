"""A job's life: ready, running, done, or a dead letter a person decides on."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import F, Q

from reliability.models import columns


class JobQuerySet(models.QuerySet["Job"]):
    def ready(self) -> JobQuerySet:
        return self.filter(state=Job.State.READY)

    def due(self, now: datetime) -> JobQuerySet:
        return self.ready().filter(held="", run_at__lte=now)

    def to_confirm(self, now: datetime) -> JobQuerySet:
        """Choose those whose provider is to be asked by ``now``."""
        return self.ready().filter(held=Job.Hold.UNCONFIRMED, run_at__lte=now)


class Job(models.Model):
    """One key's work. The row is narrow and moves by guarded statements of ``work/`` only."""

    class State(models.TextChoices):
        READY = "ready", "Ready"
        RUNNING = "running", "Running"
        DONE = "done", "Done"
        DEAD = "dead", "Dead letter"
        DISCARDED = "discarded", "Discarded"
        RESOLVED = "resolved", "Resolved"

    class Hold(models.TextChoices):
        NONE = "", "not held"
        KIND_UNKNOWN = "kind unknown", "no worker knows this kind"
        PAUSED = "paused", "its source, kind or destination is paused"
        UNCONFIRMED = "unconfirmed", "its provider has not confirmed it yet"

    LANE_LIVE = 0
    LANE_REDRIVE = 10

    public_id = columns.public_id()
    tenant = columns.tenant(db_constraint=False, db_index=False)
    source = models.ForeignKey(
        "reliability.Source", on_delete=models.PROTECT, db_constraint=False,
        db_index=False, related_name="jobs",
    )  # fmt: skip
    key = models.OneToOneField(
        "reliability.ProcessedKey", on_delete=models.PROTECT, related_name="job"
    )
    kind = models.TextField()
    queue = models.TextField()
    lane = models.SmallIntegerField(default=LANE_LIVE, db_default=LANE_LIVE)
    state = models.TextField(choices=State, default=State.READY, db_default=State.READY)
    held = models.TextField(choices=Hold, default=Hold.NONE, db_default=Hold.NONE, blank=True)
    run_at = models.DateTimeField()
    not_after = models.DateTimeField(null=True)
    """Past this the downstream may have forgotten the key: never started again unasked."""
    token = models.BigIntegerField(default=0, db_default=0)
    """The fence: drawn at each claim from one sequence; every later write must show it."""
    alone = models.BooleanField(default=False, db_default=False)
    lease_expires_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    intent_at = models.DateTimeField(null=True)
    starts = models.IntegerField(default=0, db_default=0)
    crashes = models.IntegerField(default=0, db_default=0)
    crashes_alone = models.IntegerField(default=0, db_default=0)
    releases = models.IntegerField(default=0, db_default=0)
    round = models.IntegerField(default=1, db_default=1)
    round_starts = models.IntegerField(default=0, db_default=0)
    round_crashes = models.IntegerField(default=0, db_default=0)
    round_crashes_alone = models.IntegerField(default=0, db_default=0)
    round_releases = models.IntegerField(default=0, db_default=0)
    """The counters never fall; a round's own figures are their distance from these marks."""
    version = models.IntegerField(default=1, db_default=1)
    """Rises whenever the job becomes or stops being a letter: what an operator's act names."""
    worker = models.TextField(default="", db_default="", blank=True)
    result: models.JSONField[Any, Any] = models.JSONField(null=True)
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    objects = JobQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="running_iff_leased",
                condition=Q(state="running", lease_expires_at__isnull=False)
                | (~Q(state="running") & Q(lease_expires_at=None)),
            ),
            models.CheckConstraint(
                name="starts_cover_the_lost_and_released",
                condition=Q(starts__gte=F("crashes") + F("releases")),
            ),
        ]
        indexes = [
            models.Index(
                fields=["queue", "lane", "run_at", "id"],
                name="jobs_to_start",
                condition=Q(state="ready", held="", crashes=F("round_crashes")),
            ),
            models.Index(
                fields=["queue", "lane", "run_at", "id"],
                name="jobs_to_start_alone",
                condition=Q(state="ready", held="", crashes__gt=F("round_crashes")),
            ),
            models.Index(
                fields=["queue", "run_at"],
                name="jobs_waiting",
                condition=Q(state="ready", held=""),
            ),
            models.Index(
                fields=["kind"], name="jobs_held", condition=Q(state="ready") & ~Q(held="")
            ),
            models.Index(
                fields=["run_at"],
                name="jobs_to_confirm",
                condition=Q(state="ready", held="unconfirmed"),
            ),
            models.Index(
                fields=["not_after"],
                name="jobs_that_expire",
                condition=Q(state="ready", not_after__isnull=False),
            ),
            models.Index(
                fields=["lease_expires_at"], name="jobs_leased", condition=Q(state="running")
            ),
            models.Index(
                fields=["source", "state"], include=["tenant"], name="jobs_of_a_source"
            ),
            models.Index(fields=["tenant", "kind", "-id"], name="jobs_of_a_kind"),
        ]
        permissions = [("view_payload", "Can see payloads unredacted, with a reason")]

    def __str__(self) -> str:
        return f"{self.kind} #{self.pk}"


class Attempt(models.Model):
    """How one start ended. Append-only."""

    class Outcome(models.TextChoices):
        DONE = "done", "Done"
        FAILED = "failed", "Failed"
        RELEASED = "released", "Released"
        LOST = "lost", "Lost"
        LATE = "late", "Done late"

    tenant = columns.tenant(db_constraint=False, db_index=False)
    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="attempts")
    round = models.IntegerField()
    number = models.IntegerField()
    """The start it ends, counted over all rounds."""
    token = models.BigIntegerField()
    outcome = models.TextField(choices=Outcome)
    error_type = models.TextField(default="", db_default="", blank=True)
    message = models.TextField(default="", db_default="", blank=True)
    traceback = models.TextField(default="", db_default="", blank=True)
    worker = models.TextField(default="", db_default="", blank=True)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField()
    retry_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["ended_at"], name="attempts_by_age")]

    def __str__(self) -> str:
        return f"{self.job_id}.{self.number} {self.outcome}"


class DeadLetterQuerySet(models.QuerySet["DeadLetter"]):
    def open(self) -> DeadLetterQuerySet:
        return self.filter(status=DeadLetter.Status.OPEN)


class DeadLetter(models.Model):
    """A round that ended without effect, or without our knowing; kept until a person decides."""

    class Outcome(models.TextChoices):
        FAILED = "failed", "Failed"
        UNKNOWN = "unknown", "Unknown"
        EXPIRED = "expired", "Expired"
        UNPARSEABLE = "unparseable", "Unparseable"
        UNROUTABLE = "unroutable", "Unroutable"
        SUSPECT = "suspect", "Suspect"

    class Status(models.TextChoices):
        OPEN = "open", "Open"
        REQUEUED = "requeued", "Requeued"
        DISCARDED = "discarded", "Discarded"
        RESOLVED = "resolved", "Resolved"
        DONE_LATE = "done late", "Done late"

    public_id = columns.public_id()
    tenant = columns.tenant(db_constraint=False, db_index=False)
    source = models.ForeignKey(
        "reliability.Source", on_delete=models.PROTECT, db_index=False, related_name="letters"
    )
    job = models.ForeignKey(Job, on_delete=models.PROTECT, related_name="letters")
    round = models.IntegerField()
    kind = models.TextField()
    outcome = models.TextField(choices=Outcome)
    reason = models.TextField()
    error_type = models.TextField(default="", db_default="", blank=True)
    message = models.TextField(default="", db_default="", blank=True)
    fingerprint = models.TextField(default="", db_default="", blank=True)
    """Equal for failures of one cause: error type, message without its numbers, own frame."""
    amount_minor = models.BigIntegerField(null=True)
    currency = models.CharField(max_length=3, null=True)
    exponent = models.SmallIntegerField(null=True)
    status = models.TextField(choices=Status, default=Status.OPEN, db_default=Status.OPEN)
    buried_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True)
    closed_by = models.TextField(default="", db_default="", blank=True)
    closed_reason = models.TextField(default="", db_default="", blank=True)

    objects = DeadLetterQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["job", "round"], name="one_letter_per_round"),
        ]
        indexes = [
            models.Index(
                fields=["tenant", "-buried_at", "-id"],
                name="letters_open_newest",
                condition=Q(status="open"),
            ),
            models.Index(
                fields=["source", "-buried_at", "-id"],
                name="letters_open_of_a_source",
                condition=Q(status="open"),
            ),
            models.Index(fields=["tenant", "-buried_at", "-id"], name="letters_newest"),
            models.Index(
                fields=["tenant", "closed_at"],
                name="letters_closed",
                condition=Q(closed_at__isnull=False),
            ),
            models.Index(
                fields=["tenant", "fingerprint", "-buried_at", "-id"],
                include=["amount_minor", "currency", "exponent"],
                name="letters_open_by_cause",
                condition=Q(status="open"),
            ),
            models.Index(
                fields=["tenant", "kind", "-buried_at", "-id"],
                name="letters_open_of_a_kind",
                condition=Q(status="open"),
            ),
            models.Index(
                fields=["tenant", "error_type", "-buried_at", "-id"],
                name="letters_open_of_an_error",
                condition=Q(status="open"),
            ),
            models.Index(
                fields=["tenant", "outcome", "-buried_at", "-id"],
                name="letters_open_by_outcome",
                condition=Q(status="open"),
            ),
            models.Index(
                fields=["tenant", "-buried_at", "-id"],
                name="letters_open_again",
                condition=Q(status="open", round__gt=1),
            ),
            models.Index(
                fields=["tenant", "currency", "amount_minor"],
                name="letters_open_by_amount",
                condition=Q(status="open", currency__isnull=False),
            ),
            models.Index(
                fields=["tenant", "status", "-buried_at", "-id"],
                name="letters_closed_newest",
                condition=~Q(status="open"),
            ),
            # Partial: over closed letters too, a requeue of many would cost eight times as much.
            GinIndex(
                fields=["message"],
                opclasses=["gin_trgm_ops"],
                name="letters_open_by_text",
                condition=Q(status="open"),
            ),
        ]
        permissions = [
            ("requeue_deadletter", "Can requeue dead letters"),
            ("discard_deadletter", "Can discard and restore dead letters"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.outcome}: {self.reason}"
