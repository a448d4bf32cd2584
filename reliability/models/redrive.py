"""Redrives and what people know of a cause: a bulk requeue as a stored operation, and notes."""

from __future__ import annotations

import uuid
from datetime import datetime

from django.db import models
from django.db.models import Q

from reliability.models import columns


class RedriveQuerySet(models.QuerySet["Redrive"]):
    def live(self) -> RedriveQuerySet:
        """Those that have letters of their own still to requeue, running or not."""
        return self.filter(state__in=Redrive.LIVE)

    def draining(self) -> RedriveQuerySet:
        return self.filter(state=Redrive.State.RUNNING)


class Redrive(models.Model):
    """A requeue of many letters: a frozen set, a pace, a reason, and an outcome for each."""

    class State(models.TextChoices):
        FROZEN = "frozen", "Not started"
        WAITING = "waiting", "Waiting for a second person"
        RUNNING = "running", "Running"
        PAUSED = "paused", "Paused"
        STOPPED = "stopped", "Stopped itself"
        CANCELLED = "cancelled", "Cancelled"
        DONE = "done", "Done"

    class Pace(models.TextChoices):
        RAMP = "ramp", "1, then 10, then a steady rate"
        STEADY = "steady", "Steady rate from the first letter"
        ONE = "one", "Only 1, then wait"

    LIVE = (State.WAITING, State.RUNNING, State.PAUSED, State.STOPPED)

    public_id = columns.public_id()
    tenant = columns.tenant()
    state = models.TextField(choices=State, default=State.FROZEN)
    asked = models.TextField()
    """The list's query string the set was found by; never empty."""
    cutoff_at = models.DateTimeField()
    """When the set was frozen: later letters are not in it."""
    more = models.BooleanField(default=False)
    """More letters matched than one redrive takes; the oldest are in it."""
    actor = models.TextField()
    user_id = models.BigIntegerField(null=True)
    mail_to = models.TextField(default="", blank=True)
    reason = models.TextField(default="", blank=True)
    ticket = models.TextField(default="", blank=True)
    include_cannot_tell = models.BooleanField(default=False)
    pace = models.TextField(choices=Pace, default=Pace.RAMP)
    rate = models.FloatField(default=1.0)
    """Letters per second of the steady part."""
    stop_percent = models.PositiveSmallIntegerField(default=20)
    stop_after = models.PositiveIntegerField(default=10)
    step = models.PositiveSmallIntegerField(default=0)
    """Steps of the ramp that were released; the steady part comes after the last."""
    paced_at = models.DateTimeField(null=True)
    """Up to when the rate has been spent."""
    judged_succeeded = models.PositiveIntegerField(default=0)
    judged_failed = models.PositiveIntegerField(default=0)
    """Results that a person saw before they resumed: the automatic stop counts from here."""
    why = models.TextField(default="", blank=True)
    """Why it is not running: what stopped it, or what somebody said."""
    approved_by = models.TextField(default="", blank=True)
    break_glass = models.TextField(default="", blank=True)
    """Why it could not wait for a second person; empty where none was needed or one approved."""
    reviewed_by = models.TextField(default="", blank=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    told_state = models.TextField(default="", blank=True)
    """The state the starter was last told of by mail."""
    mail_due_at = models.DateTimeField(null=True)
    mail_tries = models.PositiveSmallIntegerField(default=0)

    objects = RedriveQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(name="a_redrive_has_a_filter", condition=~Q(asked="")),
            models.CheckConstraint(
                name="started_redrives_have_a_reason",
                condition=Q(started_at=None) | ~Q(reason=""),
            ),
        ]
        indexes = [
            models.Index(fields=["tenant", "-cutoff_at", "-id"], name="redrives_newest"),
            models.Index(fields=["state"], name="redrives_by_state"),
        ]
        permissions = [
            ("approve_redrive", "Can approve other people's redrives and review broken glass"),
        ]

    def __str__(self) -> str:
        return f"R-{self.pk}"


class RedriveMember(models.Model):
    """One letter of a redrive: what was expected of it and what became of it."""

    class Verdict(models.TextChoices):
        WILL_RUN = "will run", "Will run"
        APPLIED = "already applied", "Already applied"
        CANNOT_TELL = "cannot tell", "Cannot tell"
        RUNNING = "running", "Running"
        WINDOW_CLOSED = "window closed", "Window closed"
        CANNOT_RUN = "cannot run", "Cannot run"

    class Outcome(models.TextChoices):
        LEFT = "left alone", "Left alone"
        PENDING = "pending", "Pending"
        RUNNING = "running", "Running"
        SUCCEEDED = "succeeded", "Succeeded"
        FAILED = "failed again", "Failed again"
        SKIPPED = "skipped", "Skipped"

    tenant = columns.tenant(db_constraint=False, db_index=False)
    redrive = models.ForeignKey(
        Redrive, on_delete=models.CASCADE, db_constraint=False, db_index=False,
        related_name="members",
    )  # fmt: skip
    letter = models.ForeignKey(
        "reliability.DeadLetter", on_delete=models.DO_NOTHING, db_constraint=False,
        db_index=False, related_name="memberships",
    )  # fmt: skip
    job_id: models.BigIntegerField[int, int] = models.BigIntegerField()
    round = models.IntegerField()
    """The letter's; the redrive gives its job the next one."""
    version = models.IntegerField()
    """The job's when the set was frozen: if it moved since, the letter is skipped."""
    verdict = models.TextField(choices=Verdict)
    outcome = models.TextField(choices=Outcome)
    why = models.TextField(default="", db_default="", blank=True)
    """The evidence behind the verdict, or why it was skipped."""
    asked_at = models.DateTimeField(null=True)
    """When the kind's ``verify`` was last asked."""
    started_at = models.DateTimeField(null=True)
    settled_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["letter", "redrive"], name="one_place_per_letter_in_a_redrive"
            ),
        ]
        indexes = [
            models.Index(fields=["redrive", "outcome", "letter"], name="members_of_a_redrive"),
        ]

    def __str__(self) -> str:
        return f"R-{self.redrive_id} DL-{self.letter_id}: {self.outcome}"


class LetterGroup(models.Model):
    """What people know of one cause; kept when its letters are requeued."""

    public_id = columns.public_id()
    tenant = columns.tenant()
    source = models.ForeignKey(
        "reliability.Source", on_delete=models.CASCADE, related_name="letter_groups"
    )
    kind = models.TextField()
    fingerprint = models.TextField()
    owner = models.CharField(max_length=120, blank=True)
    note = models.TextField(blank=True)
    ticket = models.CharField(max_length=200, blank=True)
    muted_until = models.DateTimeField(null=True)
    changed_at = models.DateTimeField()
    changed_by = models.TextField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "source", "kind", "fingerprint"], name="one_note_per_cause"
            ),
        ]

    def muted(self, now: datetime) -> bool:
        return self.muted_until is not None and self.muted_until > now


class BodyEdit(models.Model):
    """A version of a body that a person wrote: unsigned, beside the original it came from."""

    public_id: models.UUIDField[uuid.UUID, uuid.UUID] = columns.public_id()
    tenant = columns.tenant(db_constraint=False, db_index=False)
    body = models.OneToOneField(
        "reliability.Body", on_delete=models.CASCADE, related_name="edit"
    )
    letter = models.ForeignKey(
        "reliability.DeadLetter", on_delete=models.PROTECT, related_name="edits"
    )
    number = models.PositiveIntegerField()
    """Version 1 is the body as received; the first edit is version 2."""
    changed: models.JSONField[list[str], list[str]] = models.JSONField(default=list)
    """JSON pointers of the fields that differ from the version before."""
    key_before = models.TextField(default="", blank=True)
    """The downstream key until then, where the edit began a new generation of it."""
    actor = models.TextField()
    user_id = models.BigIntegerField(null=True)
    reason = models.TextField()
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="edits_come_after_the_original", condition=Q(number__gte=2)
            ),
        ]
