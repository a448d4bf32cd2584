"""The Celery app: a doorbell for the workers, and the clock that rings it."""

import os
from datetime import timedelta
from typing import Any

from celery import Celery

from reliability.conf import conf

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "reliability.project.settings")

app = Celery("reliability")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["reliability"])
# Also in threads that did not import this module: the web server's.
app.set_default()


@app.on_after_configure.connect
def set_clock(sender: Celery, **_: Any) -> None:
    """Set beat's schedule once the settings, and with them the pace, can be read."""
    sender.conf.beat_schedule = schedule()


def schedule() -> dict[str, dict[str, Any]]:
    """Return beat's entries; a tick not started by the time of the next has expired."""
    every = {
        "reliability.tick_sweep": conf().sweep_every,
        "reliability.tick_alerts": conf().alerts_every,
        "reliability.tick_reconcile": conf().reconcile_every,
        "reliability.tick_collect": conf().collect_every,
        "reliability.tick_undelivered": conf().undelivered_every,
        "reliability.tick_prune": conf().prune_every,
        "reliability.tick_redrive": conf().redrive_every,
        "reliability.tick_schedule": conf().schedule_every,
    }
    return {name: _entry(name, interval) for name, interval in every.items()}


def _entry(name: str, interval: timedelta) -> dict[str, Any]:
    options = {"queue": "ticks", "expires": interval.total_seconds()}
    return {"task": name, "schedule": interval, "options": options}
