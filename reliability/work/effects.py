"""The effect ledger at work: single outside effects marked before or after they happen."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.db.models.functions import Now

from reliability import sql
from reliability.conf import conf
from reliability.errors import (
    EffectInDoubt,
    JobInterrupted,
    JobTimeout,
    LeaseLost,
    NotDeclared,
    PermanentError,
    RetryLater,
)
from reliability.handlers import DedupeWindow, Kind
from reliability.killing import Point, reach
from reliability.models import Effect, Job
from reliability.work import attempt as attempts
from reliability.work.lease import JobId, Leased
from reliability.work.nesting import open_transactions
from reliability.work.settle import intend, storable

NOTHING_HAPPENED = (PermanentError, RetryLater)
"""With these an effect says that downstream refused it; any other error leaves a doubt."""


@dataclass(frozen=True)
class _Marked:
    marked: bool


@dataclass(frozen=True)
class _Extended:
    over: bool


@dataclass(frozen=True)
class _Answer:
    result: Any


@dataclass
class Effects:
    """One start of one job, as its event sees it. ``in_doubt``: something may have happened."""

    job: Leased
    kind: Kind
    in_doubt: bool = False
    depth: tuple[bool, int] = field(default_factory=open_transactions)

    def begin(self) -> bool:
        """Mark the whole start where its kind wants that; ``False``: the lease was lost.

        A job that has marks of its own needs none: its handler marks each effect.
        """
        if not self.kind.intends or Effect.objects.filter(job_id=self.job.id).exists():
            return True
        self.in_doubt = intend(self.job)
        reach(Point.INTENDED)
        return self.in_doubt

    def once(self, name: str, key: str, effect: Callable[[str], Any]) -> Any:
        """Answer from the ledger, or have the effect happen and record it; see ``Event.once``."""
        if not isinstance(self.kind.sink, DedupeWindow):
            raise NotDeclared(
                f"{self.kind.name!r} declares no DedupeWindow: no event.once(...)."
            )
        if open_transactions() != self.depth:
            raise NotDeclared(
                "event.once(...) commits marks: call it outside of a transaction."
            )
        if (mark := self._mark(name)) and mark.confirmed_at:
            return mark.result
        if self.kind.sink.record == "before":
            return self._marked_before(name, key, effect)
        self._hold()
        return self._confirm(name, key, effect(key))

    def heartbeat(self) -> None:
        """Extend the lease; see ``Event.heartbeat``."""
        if self.kind.heartbeat is None:
            raise NotDeclared(f"{self.kind.name!r} declares no heartbeat.")
        self._may_go_on()
        found = sql.rows(
            "extend_lease", _Extended, id=self.job.id, token=self.job.token,
            lease=conf().lease, deadline=self.kind.deadline,
        )  # fmt: skip
        if not found:
            raise LeaseLost("the job was taken over; its worker must not go on")
        if found[0].over:
            raise JobTimeout(f"the handler ran past its deadline of {self.kind.deadline}")

    def _may_go_on(self) -> None:
        """Refuse what could not commit, or what begins while the worker stops."""
        if open_transactions() != self.depth:
            raise NotDeclared("marks and heartbeats commit: no transaction may be open.")
        if attempts.stopping():
            raise JobInterrupted("the worker is shutting down")

    def _mark(self, name: str) -> Effect | None:
        return Effect.objects.filter(job_id=self.job.id, name=name).first()

    def _marked_before(self, name: str, key: str, effect: Callable[[str], Any]) -> Any:
        found = sql.rows("mark_effect", _Marked, **self._named(name), key=key)
        if not found:
            raise LeaseLost("the job was taken over; its effect is another's to bring about")
        self.in_doubt = True
        if not found[0].marked:
            raise EffectInDoubt(
                f"{name!r} was begun and never confirmed: it may have happened"
            )
        reach(Point.MARKED)
        try:
            answer = effect(key)
        except NOTHING_HAPPENED:
            sql.rows("withdraw_effect", JobId, **self._named(name))
            self.in_doubt = False
            raise
        return self._confirm(name, key, answer)

    def _hold(self) -> None:
        """Look at the fence before an effect: who lost the lease begins nothing more."""
        held = Job.objects.filter(
            pk=self.job.id, token=self.job.token, lease_expires_at__gt=Now()
        )
        if not held.exists():
            raise LeaseLost("the job was taken over; its effect is another's to bring about")

    def _confirm(self, name: str, key: str, answer: Any) -> Any:
        reach(Point.ANSWERED)
        [first] = sql.rows(
            "confirm_effect", _Answer, **self._named(name), key=key, round=self.job.round,
            tenant_id=self.job.tenant_id, result=storable(answer),
        )  # fmt: skip
        self.in_doubt = False
        return first.result

    def _named(self, name: str) -> dict[str, Any]:
        return {"id": self.job.id, "token": self.job.token, "name": name}
