"""What the database itself refuses of a job, whoever asks: moves that no verb of ours makes."""

from datetime import timedelta
from itertools import product

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from reliability.claim.enqueue import enqueue
from reliability.models import Job
from reliability.outbound.senders import TEST_TYPE
from tests.database import world

pytestmark = pytest.mark.django_db

MOVES = {
    "ready": {"ready", "running", "done", "dead"},
    "running": {"running", "ready", "done", "dead"},
    "done": set(),
    "dead": {"ready", "done", "discarded", "resolved"},
    "discarded": {"dead"},
    "resolved": set(),
}  # fmt: skip
"""From a state to those it may become; ``done`` is also said late, of a ready or dead one."""
STATES = list(MOVES)


def job_in(state: str) -> Job:
    enqueue(TEST_TYPE, key="one", tenant=world.tenant())
    way = {"discarded": ["dead", "discarded"], "resolved": ["dead", "resolved"]}
    for step in way.get(state, [state]):
        move(step)
    return Job.objects.get()


def move(state: str) -> None:
    until = timezone.now() + timedelta(minutes=1) if state == "running" else None
    Job.objects.update(state=state, lease_expires_at=until)


@pytest.mark.parametrize(("old", "new"), list(product(STATES, STATES)))
def test_the_database_knows_which_moves_there_are(old: str, new: str) -> None:
    job = job_in(old)
    if new in MOVES[old]:
        move(new)
        assert Job.objects.get().state == new
        return
    with (
        pytest.raises(IntegrityError, match=f"may not move from {old}"),
        transaction.atomic(),
    ):
        move(new)
    assert Job.objects.get().state == job.state


def test_a_token_never_falls() -> None:
    job = job_in("running")
    Job.objects.update(state="running", token=job.token + 5)
    with pytest.raises(IntegrityError, match="may not move"), transaction.atomic():
        Job.objects.update(state="running", token=job.token + 4)
