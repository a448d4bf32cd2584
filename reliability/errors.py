"""The exceptions a handler may raise, and those the engine raises; named for what happened."""

from datetime import timedelta


class ReliabilityError(Exception):
    """Root of every exception raised by this package."""


# Raised by handlers.


class PermanentError(ReliabilityError):
    """Trying again cannot help: the job is buried at once."""


class RetryLater(ReliabilityError):
    """Try again, no sooner than ``after`` (honoured up to the policy's cap)."""

    def __init__(self, after: timedelta, message: str = "") -> None:
        super().__init__(message or f"asked to retry after {after}")
        self.after = after


# Raised at handlers, inside them, by the engine.


class JobTimeout(ReliabilityError):
    """The handler used up its kind's time limit."""


class JobInterrupted(ReliabilityError):
    """The worker is shutting down and the grace for running handlers is over."""


class LeakedTransaction(ReliabilityError):
    """A local handler left a transaction open, or marked ours for rollback: nothing of it stays."""


class OutsideEffectInLocalTransaction(ReliabilityError):
    """A LocalTransaction handler opened a socket: that effect could not be rolled back."""


class NotDeclared(PermanentError):
    """The handler asked for what its kind does not declare, or cannot have where it asked."""


class EffectInDoubt(ReliabilityError):
    """An effect was begun and never confirmed: it may have happened, so it is not repeated."""


# Raised at whoever declares or enqueues.


class UseRunOnce(ReliabilityError):
    """``Backoff(attempts=1)`` was asked for: that is RunOnce, and saying so matters."""


class KeyNotAccepted(ReliabilityError):
    """A kind or key that cannot keep the promise was refused before any row existed."""


class KeyConflict(ReliabilityError):
    """The key is claimed already, by a job that differs in kind, operation or amount."""


class TryAgain(ReliabilityError):
    """Somebody else holds the key right now, or the database cannot take it: ask again."""


class NotWorked(ReliabilityError):
    """A delivery that is answered after its work was not worked; its claim was released."""


# Raised at whoever sends a request to an address somebody gave us.


class AddressRefused(ReliabilityError):
    """The URL may not be asked: its scheme, port or one of its addresses is not allowed."""


class NoAnswer(ReliabilityError):
    """No answer came: the name, the connection or the time failed. The effect is unknown."""


# Raised at a worker who was not first.


class LeaseLost(ReliabilityError):
    """Another worker, or the sweep, took the job over. The loser must write nothing."""


class RedriveRefused(ReliabilityError):
    """A redrive may not be frozen, started or moved like this; nothing was changed."""
