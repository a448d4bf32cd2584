"""Named points of the engine at which a proof may kill the process; elsewhere they are nothing."""

import itertools
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from reliability.conf import PACE_VARIABLE, pace_name

KILL_VARIABLE = "RELIABILITY_KILL"
"""``point:hit``, comma-separated: die at that passage of the point, once; or ``ordered``."""
ORDERED = "ordered"
"""Die where a file named for the point lies in the folder of orders: see ``order``."""
THROWAWAY = "throwaway"
"""The file by which a data folder says that its servers are thrown away afterwards."""
ORDERS = "kills"


class Point(StrEnum):
    """Where it may end: the layer, then what has just happened there."""

    CLAIMED = "ingest.claimed"
    """The door: the claim is committed, the delivery not answered."""
    UNRUNG = "ingest.unrung"
    """Door, outbox and redrive: committed, the bell not yet rung."""
    LEASED = "worker.leased"
    """The lease is committed, no handler was started."""
    INTENDED = "worker.intended"
    """The intent mark of a whole start is committed, its handler was not started."""
    MARKED = "worker.marked"
    """The mark of one effect is committed, the effect was not begun."""
    ANSWERED = "worker.answered"
    """One marked effect happened, the ledger does not know."""
    UNFINISHED = "worker.unfinished"
    """An outside handler returned, its job is not marked done."""
    AMID_BATCH = "worker.amid-batch"
    """One savepoint of a batch is released, the batch goes on."""
    UNCOMMITTED = "worker.uncommitted"
    """Local jobs are marked done, the transaction is not committed."""
    COMMITTED = "worker.committed"
    """Done and committed."""
    RELEASING = "worker.releasing"
    """A start is about to be given back."""
    RESCUED = "sweep.rescued"
    """Lost jobs are ready again, nobody was told."""
    REQUEUED = "redrive.requeued"
    """A tick requeued letters, their results are not settled."""


def reach(point: Point) -> None:
    """End this process by SIGKILL where that was ordered; without RELIABILITY_KILL do nothing."""
    if _orders is not None:
        _orders.reach(point)


class _Orders:
    """What was ordered, and how often each point was passed in this process."""

    def __init__(self, folder: Path, given: Mapping[Point, int]) -> None:
        self._folder = folder
        self._given = given
        self._passed = {point: itertools.count(1) for point in Point}

    def reach(self, point: Point) -> None:
        hit = next(self._passed[point])
        due = self._given.get(point) == hit and self._first(f"{point}:{hit}")
        if due or self._taken(point):
            os.kill(os.getpid(), signal.SIGKILL)

    def _first(self, name: str) -> bool:
        """Tell whether no process died of this before: a restarted one lives on."""
        try:
            (self._folder / name).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def _taken(self, point: Point) -> bool:
        """Take an order that lies there, in one step: of all processes one does."""
        if not (self._folder / point).exists():
            return False
        with suppress(FileNotFoundError):
            (self._folder / point).rename(self._folder / f"{point}@{os.getpid()}")
            return True
        return False


def order(folder: Path, point: Point) -> None:
    """Have the next process that reaches the point die there; ``folder`` is the data folder."""
    (folder / ORDERS / point).touch()


def obeyed(folder: Path, point: Point) -> int | None:
    """Return the number of the process that died of the order, ``None`` before; then forget it."""
    for taken in (folder / ORDERS).glob(f"{point}@*"):
        taken.unlink()
        return int(taken.name.rpartition("@")[2])
    return None


def withdraw(folder: Path, point: Point) -> bool:
    """Take an order back; ``False`` when it was obeyed meanwhile."""
    try:
        (folder / ORDERS / point).unlink()
    except FileNotFoundError:
        return False
    return True


def read(environment: Mapping[str, str]) -> dict[Point, int] | None:
    """Read what the environment orders: the hit of each point, empty for ``ordered``.

    ``None`` where nothing is. Raises ``ImproperlyConfigured`` for anything but throw-away servers
    at the pace ``quick``.
    """
    text = environment.get(KILL_VARIABLE, "")
    if not text:
        return None
    if pace_name(environment) != "quick" or not _thrown_away(environment):
        raise ImproperlyConfigured(
            f"{KILL_VARIABLE} kills workers: it is for throw-away servers at {PACE_VARIABLE}=quick."
        )
    return {} if text == ORDERED else dict(map(_entry, text.split(",")))


def _thrown_away(environment: Mapping[str, str]) -> bool:
    given = any(environment.get(name) for name in ("DATABASE_URL", "BROKER_URL"))
    folder = environment.get("RELIABILITY_DATA")
    return not given and bool(folder) and Path(folder or "", THROWAWAY).exists()


def _entry(text: str) -> tuple[Point, int]:
    name, _, hit = text.partition(":")
    if name not in list(Point) or not hit.isdecimal() or not int(hit):
        raise ImproperlyConfigured(
            f"{KILL_VARIABLE}: {text!r} is not point:hit; points are {', '.join(Point)}."
        )
    return Point(name), int(hit)


def _from(environment: Mapping[str, str]) -> _Orders | None:
    given = read(environment)
    if given is None:
        return None
    folder = Path(environment["RELIABILITY_DATA"], ORDERS)
    folder.mkdir(exist_ok=True)
    return _Orders(folder, given)


_orders = _from(os.environ)
