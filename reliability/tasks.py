"""Celery's door: each task is one call, the rules live below; and the worker parent's watch."""

import logging
import multiprocessing
import os
import signal
import threading
import time
from datetime import timedelta
from typing import Any

import billiard
from celery import shared_task
from celery.signals import (
    task_prerun,
    worker_init,
    worker_process_init,
    worker_ready,
    worker_shutting_down,
)
from django.db import DatabaseError, close_old_connections
from django.utils import timezone

from reliability import dispatch, hearing
from reliability.alerts.deliver import deliver
from reliability.alerts.evaluate import draining, evaluate, held_back, last_look
from reliability.alerts.heartbeat import heartbeat
from reliability.alerts.morning import owe_mornings
from reliability.alerts.notices import tell_askers
from reliability.checks import refuse_to_start
from reliability.claim.schedule import run_schedules
from reliability.conf import conf
from reliability.models import Run
from reliability.reconcile import plan
from reliability.reconcile.collect import collect
from reliability.reconcile.undelivered import check_undelivered
from reliability.sweep import last_good, sweep
from reliability.sweep.ledger import count_ledger
from reliability.sweep.prune import prune
from reliability.work import attempt, drain
from reliability.work.redrive import advance
from reliability.work.redrive.mail import tell
from reliability.work.rescue import due_queues

logger = logging.getLogger(__name__)


@shared_task(name=dispatch.DRAIN, ignore_result=True)
def run_drain(queue: str) -> None:
    """Answer a bell. Carries no job, so that a repeated, lost or forged one does no harm."""
    if queue in drain.QUEUES:
        drain.drain(queue)


@shared_task(name="reliability.tick_sweep", ignore_result=True)
def tick_sweep() -> None:
    sweep(Run.Trigger.BEAT)
    heartbeat("sweep", Run.Trigger.BEAT)
    count_ledger(timezone.now())


@shared_task(name="reliability.tick_alerts", ignore_result=True)
def tick_alerts() -> None:
    evaluated = evaluate(Run.Trigger.BEAT)
    owe_mornings(timezone.now())
    deliver()
    tell_askers()
    if not evaluated.failed:
        heartbeat("alerts", Run.Trigger.BEAT)


@shared_task(name="reliability.tick_reconcile", ignore_result=True)
def tick_reconcile() -> None:
    plan(Run.Trigger.BEAT)


@shared_task(name="reliability.tick_collect", ignore_result=True)
def tick_collect() -> None:
    collect(Run.Trigger.BEAT)


@shared_task(name="reliability.tick_undelivered", ignore_result=True)
def tick_undelivered() -> None:
    check_undelivered(Run.Trigger.BEAT)


@shared_task(name="reliability.tick_schedule", ignore_result=True)
def tick_schedule() -> None:
    run_schedules(Run.Trigger.BEAT)


@shared_task(name="reliability.tick_redrive", ignore_result=True)
def tick_redrive() -> None:
    now = timezone.now()
    drained = (
        draining() | held_back()
    )  # an operator may have cancelled or paused one meanwhile
    advance(now)
    tell(now)
    if drained and drained - draining():  # what one held back is judged at once
        evaluate(Run.Trigger.BEAT)


@shared_task(name="reliability.tick_prune", ignore_result=True)
def tick_prune() -> None:
    prune(Run.Trigger.BEAT)


# Start: a worker that cannot keep the promise does not start.


@worker_init.connect
def refuse_bad_settings(**_: Any) -> None:
    """End the worker, with one line a fault, where the system checks find an error."""
    refuse_to_start()


@task_prerun.connect
def look_at_the_connection(**_: Any) -> None:
    """Have a task find out whether the connection kept from the one before still answers."""
    close_old_connections()


# Stop: a flag all children see, so that nothing more starts; then a nudge for what still runs.

_stopping = multiprocessing.get_context("fork").Value("b", 0, lock=False)


@worker_process_init.connect
def watch_the_flag(**_: Any) -> None:
    """Let this child see the shutdown, and let SIGALRM end a handler but never the process."""
    attempt.stopping = lambda: bool(_stopping.value)
    signal.signal(signal.SIGALRM, attempt.interrupt)


@worker_shutting_down.connect
def stop_children(**_: Any) -> None:
    """Stop new starts at once; handlers that outlast the grace get ``JobInterrupted``."""
    _stopping.value = 1
    nudge = threading.Timer(conf().shutdown_grace.total_seconds(), _interrupt_children)
    nudge.daemon = True
    nudge.start()


def _interrupt_children() -> None:
    for child in billiard.active_children():
        os.kill(child.pid, signal.SIGALRM)


# Watch: bells get lost and nobody rings for a retry that becomes due; the parent looks.

STAND_IN_EVERY = timedelta(seconds=5)
"""How often it asks whether beat is silent, which is told by minutes."""


@worker_ready.connect
def watch_the_queues(sender: Any, **_: Any) -> None:
    """Start the parent's watches: of its ears always, of the queues in workers that drain."""
    hearing.start(sender)
    if set(drain.QUEUES) & set(sender.app.amqp.queues.consume_from):
        threading.Thread(target=_watch, name="watch", daemon=True).start()


def _watch() -> None:
    pause, looked = threading.Event(), 0.0
    while not _stopping.value:
        try:
            for queue in due_queues():
                dispatch.ring(queue)
            if time.monotonic() - looked > STAND_IN_EVERY.total_seconds():
                looked = time.monotonic()
                _stand_in()
        except DatabaseError:
            logger.warning("watch_without_database")
            close_old_connections()
        pause.wait(conf().poll_every.total_seconds())


def _stand_in() -> None:
    """Sweep and look at the alerts where beat has not for too long."""
    last = last_good()
    now = timezone.now()
    if last is None or now - last > conf().sweep_late_after:
        sweep(Run.Trigger.WORKER)
    # Where beat is silent, somebody else must say so.
    seen = last_look()
    if seen is None or now - seen > conf().sweep_late_after:
        evaluate(Run.Trigger.WORKER)
        deliver()
