"""Redrives: a bulk requeue as a stored operation that survives whoever started it."""

from reliability.work.redrive.advance import Advanced, advance
from reliability.work.redrive.freeze import freeze
from reliability.work.redrive.pace import Pace, Standing
from reliability.work.redrive.standing import counts, standing
from reliability.work.redrive.verbs import (
    Plan,
    approve,
    cancel,
    change_rate,
    close_applied,
    pause,
    resume,
    review,
    second_person,
    start,
)

__all__ = [
    "Advanced",
    "Pace",
    "Plan",
    "Standing",
    "advance",
    "approve",
    "cancel",
    "change_rate",
    "close_applied",
    "counts",
    "freeze",
    "pause",
    "resume",
    "review",
    "second_person",
    "standing",
    "start",
]
