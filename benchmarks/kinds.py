"""Our side of the job benchmarks: the same effect, as kinds of each mode."""

import os
from datetime import timedelta
from urllib.request import urlopen

from django.db import connection

from benchmarks.peers.effect import INSERT, happen
from benchmarks.peers.effect_rows import Effect
from reliability import Backoff, Event, LocalTransaction, ProviderHeader, handler


@handler("bench.local", sink=LocalTransaction())
def local(event: Event) -> None:
    with connection.cursor() as cursor:
        cursor.execute(INSERT, [event.key])


# Without a wait: the figure is what failures cost, not how long a policy waits.
AT_ONCE = Backoff(first=timedelta(microseconds=1), cap=timedelta(microseconds=1), attempts=3)


@handler("bench.failing", sink=LocalTransaction(), policy=AT_ONCE)
def failing(event: Event) -> None:
    """Fail one in a hundred on its first attempt."""
    if event.failures == 0 and int(event.key.rpartition("-")[2]) % 100 == 0:
        raise ValueError("one in a hundred")
    local(event)


@handler("bench.poison", sink=LocalTransaction())
def poison(event: Event) -> None:
    raise ValueError("always")


@handler("bench.orm", sink=LocalTransaction())
def orm(event: Event) -> None:
    Effect.objects.get_or_create(key=event.key)


@handler("bench.http", sink=ProviderHeader())
def http(event: Event) -> None:
    with urlopen(f"http://127.0.0.1:{os.environ['DOWNSTREAM']}/", timeout=10):
        pass


@handler("bench.outside", sink=ProviderHeader())
def outside(event: Event) -> None:
    """An effect that is somebody else's: its own connection, committed alone."""
    happen(event.key)
