"""Carries out what is planned for a replay while its deliveries are sent."""

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, Protocol, Self, TypeVar

from django.db import connections

AHEAD_MAX = 24
HOLD_SECONDS = 0.5
"""How far deliveries run ahead of an act that is due; then one goes every so often.

So every act meets traffic, and none waits for traffic that waits for it.
"""


class Planned(Protocol):
    """Something to be done once so many deliveries were answered."""

    @property
    def after(self) -> int: ...


Plan = TypeVar("Plan", bound=Planned)
Done = TypeVar("Done")


class Timeline(Generic[Plan, Done]):
    """Does one act after the other in a thread of its own, and keeps what came of each."""

    def __init__(self, acts: Sequence[Plan], do: Callable[[Plan], Done]) -> None:
        self.log: list[Done] = []
        self._acts, self._do = acts, do
        self._answered = self._carried_out = 0
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="timeline")
        self._failure: BaseException | None = None
        self._let_go = 0.0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Wait until every act is done: what has not come up by then comes now."""
        with self._changed:
            self._answered = max(self._answered, *(act.after for act in self._acts), 0)
            self._changed.notify_all()
        self._thread.join()
        if self._failure:
            raise self._failure

    def answered(self) -> None:
        """Hear of one more answered delivery; the senders take turns to wait for an act overdue."""
        with self._changed:
            self._answered += 1
            self._changed.notify_all()
            if not self._caught_up():
                now = time.monotonic()
                self._let_go = max(self._let_go, now) + HOLD_SECONDS
                if self._changed.wait_for(self._caught_up, self._let_go - now):
                    self._let_go = 0.0

    def _caught_up(self) -> bool:
        waiting = self._acts[self._carried_out : self._carried_out + 1]
        return all(self._answered <= act.after + AHEAD_MAX for act in waiting)

    def _run(self) -> None:
        try:
            for act in self._acts:
                with self._changed:
                    self._changed.wait_for(partial(self._due, act))
                done = self._do(act)
                with self._changed:
                    self.log.append(done)
                    self._carried_out += 1
                    self._changed.notify_all()
        except BaseException as failure:  # noqa: BLE001 - told to whoever waits for this thread
            self._failure, self._carried_out = failure, len(self._acts)
        finally:
            connections.close_all()

    def _due(self, act: Plan) -> bool:
        return self._answered >= act.after
