"""What happens when an event of some kind is worked: the registry handler authors write to."""

import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Literal, Protocol

from reliability.errors import KeyNotAccepted, NotDeclared
from reliability.policy import BACKGROUND, USER_FACING, Backoff, Policy, RunOnce

# Key sinks: what downstream rejects a repeat. There is no default.


@dataclass(frozen=True)
class LocalTransaction:
    """The handler's database writes and the DONE mark commit together."""


@dataclass(frozen=True)
class UniqueConstraint:
    """The insert that violates ``model.field``'s unique constraint is the repeat."""

    model: str
    field: str


@dataclass(frozen=True)
class ProviderHeader:
    """The downstream honours the key in this request header, and forgets it after ``window``."""

    header: str = "Idempotency-Key"
    window: timedelta = timedelta(hours=24)


@dataclass(frozen=True, kw_only=True)
class DedupeWindow:
    """Our own effect ledger, for a downstream that rejects nothing itself.

    ``before``: the mark commits first, a crash is never repeated (the effect may be missing).
    ``after``: the mark commits after the answer, a crash repeats it (the effect may repeat).
    """

    window: timedelta
    record: Literal["before", "after"]


Sink = LocalTransaction | UniqueConstraint | ProviderHeader | DedupeWindow

# What a kind may know about the world: the evidence for pre-flight, recover and redrive.


@dataclass(frozen=True)
class Applied:
    reference: str
    at: datetime | None = None


@dataclass(frozen=True)
class NotApplied:
    pass


@dataclass(frozen=True)
class CannotTell:
    reason: str = ""


Evidence = Applied | NotApplied | CannotTell


@dataclass(frozen=True, kw_only=True)
class MappedOperation:
    """What is being done to the world, as drawn from a payload: this charge, this refund."""

    operation_class: str
    reference: str
    amount_minor: int | None = None
    currency: str | None = None
    exponent: int | None = None
    occurred_at: datetime | None = None
    batch: str | None = None
    """The payout or batch it is settled with, where a statement lists that as one."""


class DownstreamKey(str):
    """The key that goes downstream; call it with a name for a job's second effect."""

    __slots__ = ()

    def __call__(self, name: str) -> str:
        """Return the key of the effect called ``name``: UUIDv5, the same on every attempt."""
        return str(uuid.uuid5(uuid.NAMESPACE_OID, json.dumps([str(self), name])))


class Start(Protocol):
    """What an event may ask of the start it is worked in; supplied by ``work/``."""

    def once(self, name: str, key: str, effect: Callable[[str], Any]) -> Any: ...

    def heartbeat(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Event:
    """What a handler is given. ``key`` is the text as received, the same on every attempt."""

    tenant: str
    source: str
    key: str
    kind: str
    body: bytes = field(repr=False)
    downstream_key: DownstreamKey
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    occurred_at: datetime | None = None
    asked_by: str = ""
    failures: int = 0
    round: int = 1
    start: Start | None = field(default=None, repr=False, compare=False)

    @cached_property
    def payload(self) -> Any:
        """The body as JSON. Treat as hostile: only its signature was checked, not its sense."""
        return json.loads(self.body) if self.body else None

    def child(self, name: str) -> str:
        """Return the key for a follow-up job of this event, as JSON [key, name]."""
        return json.dumps([self.key, name], separators=(",", ":"), ensure_ascii=False)

    def once(self, name: str, effect: Callable[[str], Any]) -> Any:
        """Have one outside effect happen under its own mark in the ledger; return its answer.

        For kinds with ``DedupeWindow``. ``effect`` is called with ``downstream_key(name)``; its
        answer comes back as JSON has it, and a later attempt gets it without another call. With
        record="before", ``effect`` raises ``PermanentError`` or ``RetryLater`` to say that nothing
        happened; any other error leaves it in doubt, and the job becomes a letter.
        """
        return self._start().once(name, self.downstream_key(name), effect)

    def heartbeat(self) -> None:
        """Say that a long handler is alive: its lease is extended, up to the kind's deadline.

        For kinds that declare ``heartbeat``, at least that often. Raises what ends the handler:
        ``LeaseLost``, ``JobTimeout`` past the deadline, ``JobInterrupted`` when the worker stops.
        """
        self._start().heartbeat()

    def _start(self) -> Start:
        if self.start is None:
            raise NotDeclared(
                "this belongs inside an outside kind's handler, while it is worked."
            )
        return self.start


Handle = Callable[[Event], Any]
Verify = Callable[[Event], Evidence]
DrawOperation = Callable[[Any], MappedOperation | None]


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of work: its handler and everything declared about a repeat."""

    name: str
    handle: Handle
    sink: Sink | None
    policy: Policy | None
    operation: DrawOperation | None = None
    verify: Verify | None = None
    limit: timedelta | None = None
    heartbeat: timedelta | None = None
    deadline: timedelta | None = None

    def policy_for(self, *, own_job: bool) -> Policy:
        """Return the declared policy, else the shipped one: own jobs have somebody waiting."""
        return self.policy or (USER_FACING if own_job else BACKGROUND)

    @property
    def queue(self) -> Literal["local", "outside"]:
        """Where it runs: in batches inside one transaction, or in threads, completed alone."""
        return (
            "local"
            if isinstance(self.sink, LocalTransaction | UniqueConstraint)
            else "outside"
        )

    @property
    def repeatable(self) -> bool:
        """Whether a start whose fate is unknown may be followed by another."""
        match self.sink:
            case None:
                return False
            case DedupeWindow(record="before"):
                return False
            case _:
                return not isinstance(self.policy, RunOnce)

    @property
    def intends(self) -> bool:
        """Whether an intent mark is committed before the handler starts."""
        before = isinstance(self.sink, DedupeWindow) and self.sink.record == "before"
        return before or isinstance(self.policy, RunOnce)

    @property
    def window(self) -> timedelta | None:
        """How long downstream remembers the key; ``None`` where it never forgets."""
        match self.sink:
            case ProviderHeader(window=window) | DedupeWindow(window=window):
                return window
            case _:
                return None


REMEDIES = (
    "declare sink=LocalTransaction() if its effects are rows of this database, "
    'sink=UniqueConstraint("app.Model", "field") if an insert rejects the repeat, '
    'sink=ProviderHeader("Idempotency-Key", window=...) if the provider does, '
    'sink=DedupeWindow(window=..., record="before" or "after") if nobody does, '
    "or policy=RunOnce() if a person shall decide after the first failure"
)

_kinds: dict[str, Kind] = {}


def handler(  # noqa: PLR0913 - one keyword for each thing a kind declares
    kind: str,
    *,
    sink: Sink | None = None,
    policy: Policy | None = None,
    operation: DrawOperation | None = None,
    verify: Verify | None = None,
    limit: timedelta | None = None,
    heartbeat: timedelta | None = None,
    deadline: timedelta | None = None,
) -> Callable[[Handle], Handle]:
    """Register the decorated function for one kind of event.

    A kind with retries and no sink is refused at start (``reliability.E010``) and by
    ``enqueue``. ``limit`` is the time one start may take; the shipped default is in ``conf``. A
    start that takes longer calls ``event.heartbeat()`` every ``heartbeat``, up to ``deadline``.
    Raises ``KeyNotAccepted`` for RunOnce with a sink other than ProviderHeader, and
    ``ValueError`` for a kind that already has a handler or cannot have a heartbeat.
    """

    def register(handle: Handle) -> Handle:
        if kind in _kinds:
            raise ValueError(f"{kind!r} already has a handler: {_kinds[kind].handle!r}")
        if isinstance(policy, RunOnce) and not isinstance(sink, ProviderHeader | None):
            raise KeyNotAccepted(
                f"{kind!r}: RunOnce() may add ProviderHeader(...), not {type(sink).__name__}; "
                "drop the sink or choose a policy with retries."
            )
        declared = Kind(
            name=kind, handle=handle, sink=sink, policy=policy, operation=operation,
            verify=verify, limit=limit, heartbeat=heartbeat, deadline=deadline,
        )  # fmt: skip
        _check_heartbeat(declared)
        _kinds[kind] = declared
        return handle

    return register


def _check_heartbeat(kind: Kind) -> None:
    if kind.heartbeat is None and kind.deadline is None:
        return
    if kind.heartbeat is None or kind.deadline is None or kind.heartbeat >= kind.deadline:
        raise ValueError(
            f"{kind.name!r}: declare a heartbeat and a longer deadline, or neither."
        )
    if kind.queue == "local":
        raise ValueError(
            f"{kind.name!r}: a handler inside our transaction cannot extend its lease; nobody "
            "would see it before the end. Declare a sink of an outside kind, or work in parts."
        )


def unregister(kind: str) -> None:
    """Forget a kind. For tests and for hosts that reload their handlers."""
    _kinds.pop(kind, None)


def find(kind: str) -> Kind | None:
    """Return the kind's declaration, or ``None`` where no handler is registered."""
    return _kinds.get(kind)


def kinds() -> list[Kind]:
    """Return every registered kind, by name."""
    return [_kinds[name] for name in sorted(_kinds)]


def lacks_sink(kind: Kind, *, own_job: bool = True) -> bool:
    """Say whether the kind would retry with nothing downstream to reject the repeat."""
    return kind.sink is None and isinstance(kind.policy_for(own_job=own_job), Backoff)
