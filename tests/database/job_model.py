"""A job's life as the rules tell it, without a database: what the machine is held against."""

from dataclasses import dataclass, field

ATTEMPTS = 3
RELEASES, CRASHES, CRASHES_ALONE = 20, 10, 3


@dataclass
class Start:
    """A start as its worker knows it; a worker that was lost still knows it."""

    token: int
    round: int
    failures: int
    alone: bool
    intended: bool = False


@dataclass
class ModelJob:
    """``repeatable``: downstream rejects a repeat. Otherwise the kind runs once."""

    repeatable: bool
    state: str = "ready"
    round: int = 1
    starts: int = 0
    failures: int = 0
    crashes: int = 0
    crashes_alone: int = 0
    releases: int = 0
    intent: bool = False
    expired: bool = False
    token: int = 0
    started_in_round: bool = False
    letters: dict[int, str] = field(default_factory=dict)
    """Round to the status of its letter."""
    outcome: str = ""
    begun: dict[int, int] = field(default_factory=dict)
    """Round to how often an outside effect was begun in it."""

    def start(self, token: int) -> Start:
        assert token > self.token
        self.state, self.token, self.expired, self.started_in_round = (
            "running",
            token,
            False,
            True,
        )
        self.starts += 1
        return Start(token, self.round, self.failures, alone=self.crashes > 0)

    def holds(self, start: Start) -> bool:
        return self.state == "running" and start.token == self.token

    def intend(self, start: Start) -> bool:
        if not self.holds(start) or self.expired or self.intent:
            return False
        self.intent = start.intended = True
        self.begun[self.round] = self.begun.get(self.round, 0) + 1
        return True

    def finish(self, start: Start) -> bool:
        if not self.holds(start):
            return False
        self._rest("done")
        return True

    def finish_late(self, start: Start) -> bool:
        """Take a result of the last start, while nobody newer began and no person decided."""
        if start.token != self.token or start.round != self.round:
            return False
        if self.state == "dead" and self.outcome == "unknown":
            self.letters[self.round] = "done late"
        elif self.state != "ready":
            return False
        self._rest("done")
        return True

    def fail(self, start: Start) -> bool:
        if not self.holds(start):
            return False
        if not self.repeatable or start.failures + 1 >= ATTEMPTS:
            self._bury("failed")
        else:
            self.failures += 1
            self._rest("ready")
        return True

    def release(self, start: Start) -> bool:
        if not self.holds(start) or self.releases >= RELEASES:
            return False
        self.releases += 1
        self._rest("ready")
        return True

    def sweep(self, *, alone: bool) -> None:
        if self.state != "running" or not self.expired:
            return
        self.crashes += 1
        self.crashes_alone += alone
        spent = self.crashes_alone >= CRASHES_ALONE or self.crashes >= CRASHES
        if (self.intent and not self.repeatable) or spent:
            self._bury("unknown")
        else:
            self._rest("ready")

    def requeue(self) -> None:
        self.letters[self.round] = "requeued"
        self.round += 1
        self.failures = self.crashes = self.crashes_alone = self.releases = 0
        self.started_in_round = False
        self._rest("ready")

    def undo(self) -> None:
        self.round -= 1
        self.letters[self.round] = "open"
        self._rest("dead")

    def close(self, state: str) -> None:
        self.letters[self.round] = state
        self._rest(state)

    def restore(self) -> None:
        self.letters[self.round] = "open"
        self._rest("dead")

    def _bury(self, outcome: str) -> None:
        self.letters[self.round] = "open"
        self.outcome = outcome
        self._rest("dead")

    def _rest(self, state: str) -> None:
        self.state, self.intent, self.expired = state, False, False
