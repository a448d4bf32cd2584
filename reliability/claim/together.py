"""Deliveries that arrive at the same moment are claimed in one statement, each to its own fate."""

import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from reliability import dispatch, sql
from reliability.claim.accept import Asked, Asking, Delivered, Fate, claim_all
from reliability.models import Source

logger = logging.getLogger(__name__)

EVENTS_MAX = 32
BYTES_MAX = 65_536
"""A larger delivery is claimed alone, so that a statement stays small."""
PATIENCE_SECONDS = 0.05
"""How long a delivery waits for the claim before it; a stuck one holds up nobody for longer."""
TAKEN_SECONDS = 10.0
"""How long one that somebody claims for waits to be told, should the database fall silent."""
SHORT_LOCKS = "SET LOCAL lock_timeout = '100ms'"


@dataclass(eq=False)
class _Waiting:
    """One delivery, its thread waiting to be told: of its fates, or that it is to lead."""

    asking: Asking
    told: threading.Event = field(default_factory=threading.Event)
    leads: bool = False
    fates: list[Fate] | None = None
    """``None`` once told: it could not be claimed with the others."""

    @property
    def marks(self) -> set[tuple[int, str | bytes]]:
        """What no other may share: the keys, and the bytes that another id could come with."""
        source, asked = self.asking.source.pk, self.asking.asked
        keys: set[tuple[int, str | bytes]] = {(source, event.key) for event in asked}
        return keys | {(source, event.body) for event in asked if event.replayable}


class _Queue:
    """Who waits in this process. One leads, and claims for all who came while the last one did."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[_Waiting] = []
        self._led = False

    def enter(self, mine: _Waiting) -> bool:
        """Join; tell whether it leads at once."""
        with self._lock:
            if self._led:
                self._waiting.append(mine)
                return False
            self._led = True
            return True

    def withdraw(self, mine: _Waiting) -> bool:
        """Take one back; ``False`` when somebody claims for it already, or it is to lead."""
        with self._lock:
            if mine not in self._waiting:
                return False
            self._waiting.remove(mine)
            return True

    def followers(self, leader: _Waiting) -> list[_Waiting]:
        """Take those who can go with the leader: no mark twice, ``EVENTS_MAX`` in all."""
        taken: list[_Waiting] = []
        marks, events = leader.marks, len(leader.asking.asked)
        with self._lock:
            for one in self._waiting:
                events += len(one.asking.asked)
                if events > EVENTS_MAX or marks & one.marks:
                    break
                taken.append(one)
                marks |= one.marks
            del self._waiting[: len(taken)]
        return taken

    def hand_over(self) -> None:
        """Let the next one lead, if anybody waits."""
        with self._lock:
            self._led = bool(self._waiting)
            if self._led:
                heir = self._waiting.pop(0)
                heir.leads = True
                heir.told.set()


_queue = _Queue()


def claim_together(
    source: Source, asked: Sequence[Asked], *, delivered: Delivered
) -> list[Fate]:
    """Do what ``claim`` does, in one statement with deliveries that arrive at the same moment.

    Where that fails each is claimed alone: one delivery's trouble is not another's. Raises what
    ``claim`` raises.
    """
    once = list({event.key: event for event in asked}.values())
    mine = _Waiting(Asking(source, once, delivered))
    if _is_large(once) or sql.database().in_atomic_block:
        return _alone(mine)
    if _queue.enter(mine) or _is_to_lead(mine):
        with dispatch.bells_held():
            return _lead(mine)
    return _alone(mine) if mine.fates is None else mine.fates


def _is_large(asked: Sequence[Asked]) -> bool:
    return len(asked) > EVENTS_MAX or sum(len(event.body) for event in asked) > BYTES_MAX


def _is_to_lead(mine: _Waiting) -> bool:
    """Wait for the one who leads; an impatient one leaves the queue and is told nothing."""
    if not mine.told.wait(PATIENCE_SECONDS) and not _queue.withdraw(mine):
        mine.told.wait(TAKEN_SECONDS)
    return mine.leads


def _lead(mine: _Waiting) -> list[Fate]:
    followers: list[_Waiting] = []
    try:
        followers = _queue.followers(mine)
        if followers and _claim([mine, *followers]) and mine.fates is not None:
            return mine.fates
        return _alone(mine)
    finally:
        for one in followers:
            one.told.set()
        _queue.hand_over()


def _alone(mine: _Waiting) -> list[Fate]:
    return claim_all([mine.asking])[0]


def _claim(all_of_them: Sequence[_Waiting]) -> bool:
    """Claim all or none; where it fails, each is claimed alone and finds its own reason."""
    try:
        fates = claim_all([one.asking for one in all_of_them], first=SHORT_LOCKS)
    except Exception as error:  # noqa: BLE001 - one delivery's trouble is not another's
        logger.warning("claimed_alone", extra={"why": type(error).__name__})
        return False
    for one, its in zip(all_of_them, fates, strict=True):
        one.fates = its
    return True
