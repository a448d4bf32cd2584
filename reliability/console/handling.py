"""What a kind declared about repeats, in words an operator can act on."""

from dataclasses import dataclass

from reliability import handlers
from reliability.console.parts import span
from reliability.handlers import (
    DedupeWindow,
    LocalTransaction,
    ProviderHeader,
    Sink,
    UniqueConstraint,
)  # fmt: skip
from reliability.policy import RunOnce


@dataclass(frozen=True)
class Handling:
    """One kind as declared; ``attempts`` is ``None`` where this process knows no such kind."""

    sink: str
    risk: str
    policy: str
    attempts: int | None
    verifies: bool


UNKNOWN = Handling("unknown here", "no handler of this name is installed", "none", None, False)  # noqa: FBT003


def handling(kind: str, *, own_job: bool) -> Handling:
    """Describe a kind. Own jobs have another default policy than webhooks."""
    declared = handlers.find(kind)
    if declared is None:
        return UNKNOWN
    policy = declared.policy_for(own_job=own_job)
    once = isinstance(policy, RunOnce)
    return Handling(
        sink=_sink(declared.sink),
        risk="runs once; a person decides" if once else _risk(declared.sink),
        policy="runs once" if once else f"up to {policy.attempts} attempts",
        attempts=policy.attempts,
        verifies=declared.verify is not None,
    )


def attempts_told(failed: int, lost: int, *, kind: str, own_job: bool) -> str:
    """Write "5 of 5 failed, 1 lost": a lost start is never inside "n of 5"."""
    if not failed and not lost:
        return "never started"
    attempts = handling(kind, own_job=own_job).attempts
    told = f"{failed} of {max(attempts, failed)} failed" if attempts else f"{failed} failed"
    return f"{told}, {lost} lost" if lost else told


def _sink(sink: Sink | None) -> str:
    match sink:
        case LocalTransaction():
            return "local transaction: effect and done in one commit"
        case UniqueConstraint(model=model, field=field):
            return f"unique constraint on {model}.{field}"
        case ProviderHeader(header=header, window=window):
            return f"provider header {header}, kept {span(window)}"
        case DedupeWindow(record=record, window=window):
            return f"our effect ledger, {span(window)}, recorded {record}"
        case None:
            return "none"


def _risk(sink: Sink | None) -> str:
    match sink:
        case LocalTransaction():
            return "no gap: one commit"
        case DedupeWindow(record="before"):
            return "may be missing"
        case _:
            return "may repeat with the same key"
