"""dramatiq over Redis: no state in PostgreSQL; the fastest Python peer of any guarantee."""

import os

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from benchmarks.peers.effect import happen

dramatiq.set_broker(RedisBroker(url=os.environ["BROKER_URL"]))


@dramatiq.actor
def plain(key: str) -> None:
    happen(key)
