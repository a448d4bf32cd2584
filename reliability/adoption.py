"""An existing Celery task becomes a kind: same function, with a key, a sink and a policy."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType
from typing import Any, Protocol

from django.core.checks import CheckMessage, Error, register

from reliability.claim.enqueue import Taken, enqueue
from reliability.handlers import Event, Sink, handler, unregister
from reliability.models import Tenant
from reliability.policy import Policy


class Task(Protocol):
    """What is used of a Celery task; Celery itself is not imported."""

    name: str
    run: Callable[..., Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...


@dataclass(frozen=True)
class Adopted:
    """A Celery task as a kind; ``enqueue`` stands where ``delay`` or ``apply_async`` stood."""

    task: Task
    kind: str

    def enqueue(
        self, key: str, *args: Any, tenant: Tenant | str, asked_by: str = "", **kwargs: Any
    ) -> Taken:
        """Take in one call of the task under ``key``; the arguments must be JSON.

        Raises what ``reliability.enqueue`` raises. Runs in the caller's transaction, so that the
        ``on_commit`` around ``delay`` can go.
        """
        payload = {"args": args, "kwargs": kwargs}
        return enqueue(self.kind, key=key, tenant=tenant, payload=payload, asked_by=asked_by)


_adopted: dict[str, Adopted] = {}


def celery_task(
    task: Task, *, sink: Sink | None = None, policy: Policy | None = None, **declared: Any
) -> Adopted:
    """Make a Celery task a kind of the task's name; ``declared`` is what ``handler`` takes.

    A task with a parameter ``event`` is given it, for ``event.downstream_key``. The task's own
    retries are refused by check ``reliability.E014``: the policy is the only one that retries.
    """
    run = _own_run(task)
    wants_event = "event" in inspect.signature(run).parameters

    def handle(event: Event) -> Any:
        called = event.payload
        extra = {"event": event} if wants_event else {}
        return task(*called["args"], **called["kwargs"], **extra)

    handler(task.name, sink=sink, policy=policy, **declared)(handle)
    adopted = Adopted(task, task.name)
    _adopted[task.name] = adopted
    return adopted


def release(adopted: Adopted) -> None:
    """Forget an adopted task. For tests and for hosts that reload their handlers."""
    _adopted.pop(adopted.kind, None)
    unregister(adopted.kind)


@register
def no_adopted_task_retries_itself(**_: Any) -> list[CheckMessage]:
    """Refuse retries in two places: they multiply, and Celery's forget the key's attempts."""
    return [
        Error(
            f"The Celery task {adopted.kind!r} {how}.",
            hint="Take its own retries out; policy=Backoff(...) retries, with the same key.",
            id="reliability.E014",
        )
        for adopted in _adopted.values()
        for how in _own_retries(adopted.task)
    ]


def _own_retries(task: Task) -> Iterator[str]:
    if getattr(task, "autoretry_for", ()):
        yield "declares autoretry_for"
    if "retry" in _names_in(inspect.unwrap(_own_run(task)).__code__):
        yield "calls .retry(...)"


def _own_run(task: Task) -> Callable[..., Any]:
    """Return the function as written: autoretry_for wraps it."""
    run: Callable[..., Any] = getattr(task, "_orig_run", task.run)
    return run


def _names_in(code: CodeType) -> set[str]:
    """Return every attribute a function reads, in the functions inside it as well."""
    inner = (part for part in code.co_consts if isinstance(part, CodeType))
    return set(code.co_names).union(*map(_names_in, inner))
