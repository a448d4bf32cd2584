"""What a stranger puts into the broker is refused or means nothing, and the worker lives."""

import pickle
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from celery import current_app

from reliability import dispatch
from reliability.claim.enqueue import enqueue
from reliability.models import Job
from reliability.outbound.senders import TEST_TYPE
from tests.database import world
from tests.database.live import working

pytestmark = pytest.mark.django_db(transaction=True)

REFUSED = "Refusing to deserialize"
SECONDS = 40
# kombu revives such an object from JSON, or raises on it.
BOMBS: list[Any] = [
    {"__type__": "datetime", "__value__": "garbage"},
    {"__type__": "uuid", "__value__": {"hex": 1}},
    [],
    "no queue of ours",
]


class Trap:
    """Makes a file where somebody unpickles it."""

    def __init__(self, at: Path) -> None:
        self.at = at

    def __reduce__(self) -> Any:
        return (Path.touch, (self.at,))


def put(arguments: Any, content_type: str, body: bytes | None = None) -> None:
    """Publish a bell as Celery writes it, with whatever stands in its body."""
    headers = {"lang": "py", "task": dispatch.DRAIN, "id": "x-1", "root_id": "x-1",
               "parent_id": None, "group": None, "retries": 0}  # fmt: skip
    with current_app.connection_for_write() as broker:
        producer = broker.Producer()
        whole = [arguments, {}, {"callbacks": None, "errbacks": None, "chain": None}]
        more: dict[str, Any] = {"headers": headers, "routing_key": "local", "exchange": ""}
        if body is None:
            producer.publish(whole, serializer="json", **more)
        else:
            producer.publish(
                body, content_type=content_type, content_encoding="binary", **more
            )


@pytest.fixture
def worker(tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    with working(tmp_path / "worker.log") as running:
        yield running


def test_a_pickle_and_revived_types_in_the_broker_are_refused_and_the_worker_lives(
    worker: "subprocess.Popen[bytes]", tmp_path: Path
) -> None:
    sprung = tmp_path / "sprung"
    pickled = pickle.dumps([[Trap(sprung)], {}, {}])
    put(None, "application/x-python-serialize", pickled)
    put(None, "application/json", pickled)
    for bomb in BOMBS:
        put([bomb], "application/json")
    enqueue(TEST_TYPE, key="after", tenant=world.tenant())
    dispatch.ring("local")
    until = time.monotonic() + SECONDS
    log = tmp_path / "worker.log"
    while time.monotonic() < until and not (
        Job.objects.get().state == "done" and REFUSED in log.read_text()
    ):
        time.sleep(0.1)
        if int(time.monotonic()) % 5 == 0:
            dispatch.ring("local")
    said = log.read_text()
    assert (Job.objects.get().state, worker.poll()) == ("done", None), said
    assert REFUSED in said
    assert not sprung.exists()
