"""A redrive whose process is killed in the middle of a step goes on in another one."""

import signal
import subprocess
import sys
from collections import Counter
from datetime import timedelta

import pytest
from django.utils import timezone

from reliability.conf import conf
from reliability.models import DeadLetter, Job
from reliability.work.redrive import advance, counts
from tests.database import world
from tests.database.live import ROOT, environment
from tests.database.test_redrive_at_size import limits, started  # noqa: F401 - a fixture

pytestmark = pytest.mark.django_db(transaction=True)

LETTERS, BATCH = 3_000, 500

# One step that ends well, and one that is killed when its letters are requeued, not yet committed.
PROCESS = """
import os, signal, sys
from datetime import timedelta
import django
django.setup()
from django.utils import timezone
from reliability import sql
from reliability.conf import conf
from reliability.work.redrive import advance
conf().__dict__["redrive_batch_max"] = int(sys.argv[1])
first = timezone.now() + timedelta(seconds=int(sys.argv[2]))
assert [done.requeued for done in advance(first)] == [int(sys.argv[1])]
real = sql.rows
def rows(name, into, /, **params):
    found = real(name, into, **params)
    if name == "requeue_members":
        os.kill(os.getpid(), signal.SIGKILL)
    return found
sql.rows = rows
advance(first + timedelta(seconds=10))
"""


def die(after: int) -> int:
    """Run a process that dies in its second step; return how it ended."""
    asked = [sys.executable, "-c", PROCESS, str(BATCH), str(after)]
    return subprocess.run(
        asked, cwd=ROOT, env=environment(), check=False, timeout=60
    ).returncode


def test_a_redrive_whose_process_is_killed_in_a_step_goes_on_and_requeues_none_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(conf().__dict__, "redrive_batch_max", BATCH)
    with world.local("book", lambda event: None):
        redrive = started(LETTERS)
    for n in range(2):
        assert die(100 * (n + 1)) == -signal.SIGKILL
        told = {"running": BATCH * (n + 1), "pending": LETTERS - BATCH * (n + 1)}
        assert counts(redrive) == told, "the step that was killed is undone"
    now = timezone.now() + timedelta(seconds=300)
    while counts(redrive).get("pending"):
        now += timedelta(seconds=10)
        assert advance(now)
    assert counts(redrive) == {"running": LETTERS}
    jobs = Counter(Job.objects.values_list("round", "version", "state"))
    assert jobs == {(2, 2, "ready"): LETTERS}
    assert DeadLetter.objects.filter(status="requeued").count() == LETTERS
