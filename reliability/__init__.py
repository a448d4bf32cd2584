"""Every event takes effect once, provably.

claim/      layer 1: an event is taken in once, however often it is delivered (the claim key)
sweep/      layer 2: accepted work that stopped moving starts again (every two minutes)
reconcile/  layer 3: what never arrived is found in the provider's own statement (daily)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from reliability.claim.identity import Day, Hour, Month, Week, period_key
from reliability.errors import (
    EffectInDoubt,
    KeyConflict,
    KeyNotAccepted,
    NotDeclared,
    PermanentError,
    RetryLater,
    TryAgain,
)
from reliability.handlers import (
    Applied,
    CannotTell,
    DedupeWindow,
    Event,
    LocalTransaction,
    MappedOperation,
    NotApplied,
    ProviderHeader,
    UniqueConstraint,
    handler,
)
from reliability.policy import BACKGROUND, USER_FACING, Backoff, RunOnce

__version__ = "0.1.0"

if TYPE_CHECKING:
    from reliability.adoption import celery_task
    from reliability.claim.enqueue import enqueue, enqueue_many
    from reliability.claim.schedule import Subject, schedule
    from reliability.inline import once

__all__ = [
    "BACKGROUND",
    "USER_FACING",
    "Applied",
    "Backoff",
    "CannotTell",
    "Day",
    "DedupeWindow",
    "EffectInDoubt",
    "Event",
    "Hour",
    "KeyConflict",
    "KeyNotAccepted",
    "LocalTransaction",
    "MappedOperation",
    "Month",
    "NotApplied",
    "NotDeclared",
    "PermanentError",
    "ProviderHeader",
    "RetryLater",
    "RunOnce",
    "Subject",
    "TryAgain",
    "UniqueConstraint",
    "Week",
    "celery_task",
    "enqueue",
    "enqueue_many",
    "handler",
    "once",
    "period_key",
    "schedule",
]


_LAZY = {
    "celery_task": "reliability.adoption",
    "enqueue": "reliability.claim.enqueue",
    "enqueue_many": "reliability.claim.enqueue",
    "once": "reliability.inline",
    "schedule": "reliability.claim.schedule",
    "Subject": "reliability.claim.schedule",
}


def __getattr__(name: str) -> Any:
    """Import what needs Django only when it is asked for, so that rules stay importable alone."""
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'reliability' has no attribute {name!r}")
