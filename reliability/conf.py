"""Every setting of the engine, with its type, unit and default; nothing else reads RELIABILITY."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from functools import cache
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

PACE_VARIABLE = "RELIABILITY_PACE"
FOLDER_ROOT_VARIABLE = "RELIABILITY_FOLDER_ROOT"
FOLDER_LOGINS_VARIABLE = "RELIABILITY_FOLDER_LOGINS"


@dataclass(frozen=True, kw_only=True)
class Conf:
    """The shipped defaults. A host overrides them in ``settings.RELIABILITY``."""

    # Leases and the sweep
    lease: timedelta = timedelta(seconds=300)
    job_limit: timedelta = timedelta(seconds=180)
    sweep_every: timedelta = timedelta(seconds=120)
    sweep_late_after: timedelta = timedelta(seconds=180)
    sweep_alarm_after: timedelta = timedelta(seconds=360)
    sweep_batch_max: int = 500
    start_grace: timedelta = timedelta(seconds=60)
    """A ready job due for longer than this without a start: its bell was lost."""
    poll_every: timedelta = timedelta(seconds=1)
    """How often a worker's parent looks for due jobs nobody rang for."""

    # The database
    prepare_statements: bool = True
    """Switch off behind a pooler that hands a connection to others between transactions."""

    # Workers
    batch_max: int = 100
    batch_time: timedelta = timedelta(milliseconds=250)
    """A batch that took longer is committed before its next job starts."""
    threads_max: int = 16
    drain_time: timedelta = timedelta(seconds=20)
    shutdown_grace: timedelta = timedelta(seconds=5)
    error_bytes_max: int = 2_000
    traceback_bytes_max: int = 16_000
    result_bytes_max: int = 65_536
    refuse_sockets: bool = False
    """Whether a LocalTransaction handler that opens a socket fails; always so in DEBUG."""

    # The door
    body_bytes_max: int = 1_048_576
    lock_timeout: timedelta = timedelta(seconds=2)
    enqueue_max: int = 10_000
    """Jobs one call of ``enqueue_many`` may bring."""
    schedule_every: timedelta = timedelta(seconds=60)
    schedule_periods_max: int = 50
    """How many missed periods of a subject are caught up with; older ones are left alone."""
    retention: timedelta = timedelta(days=60)
    body_retention: timedelta = timedelta(days=30)

    # Requests to addresses somebody gave us
    outbound_time: timedelta = timedelta(seconds=10)
    outbound_connect_time: timedelta = timedelta(seconds=5)
    outbound_answer_bytes_max: int = 65_536
    outbound_ports: tuple[int, ...] = (80, 443)
    outbound_plain_http: bool = False
    outbound_private_networks: tuple[str, ...] = ()
    """Networks of our own that may be asked all the same, on any port: ``10.1.0.0/16``."""

    # Operators
    undo: timedelta = timedelta(seconds=10)
    selection_max: int = 500
    page_size: int = 50
    count_max: int = 10_000
    upload_bytes_max: int = 20 * 1024 * 1024

    stretches_per_pass: int = 10
    """Stretches of the key ledger a sweep's tick counts: of those new, and of those counted before."""

    # Redrives
    redrive_every: timedelta = timedelta(seconds=2)
    redrive_letters_max: int = 100_000
    """Letters of one redrive; where more match, the oldest are taken and the page says so."""
    redrive_batch_max: int = 5_000
    """Letters requeued or settled in one statement."""
    redrive_rate: float = 5.0
    redrive_rate_max: float = 1_000.0
    """Letters per second: what the form offers, and the most it takes."""
    redrive_unsettled: timedelta = timedelta(seconds=30)
    """How much of its rate may be on its way without a result before it waits."""
    redrive_stop_percent: int = 20
    redrive_stop_after: int = 10
    """It stops itself when more than this share of at least so many results failed again."""
    redrive_verify_max: int = 200
    redrive_verify_time: timedelta = timedelta(seconds=5)
    """How many letters a dry run or a tick asks ``verify`` about, and for how long."""
    redrive_verified_for: timedelta = timedelta(minutes=10)
    redrive_alone_letters: int = 1_000
    redrive_alone_major: int = 50_000
    """Above so many letters, or so many units of one currency, a second person approves."""
    redrive_draft_kept: timedelta = timedelta(days=1)
    edited_bytes_max: int = 262_144
    """Bodies larger than this cannot be edited in a form."""

    # Alerts and the daily compare
    alerts_every: timedelta = timedelta(seconds=60)
    alert_high: int = 25
    alert_low: int = 10
    alert_hold: timedelta = timedelta(minutes=5)
    oldest_letter: timedelta = timedelta(hours=24)
    oldest_ready: timedelta = timedelta(minutes=10)
    """A due job that waited longer than this wakes somebody; below a fifth of it all is well."""
    snapshot_held: timedelta = timedelta(seconds=60)
    """A session that keeps a snapshot open for longer than this wakes somebody."""
    mails_per_hour_max: int = 30
    """To one address; the rest wait."""
    mails_per_pass_max: int = 200
    mail_tries_max: int = 10
    """With waits that double from a minute to an hour: about four hours."""
    mail_lease: timedelta = timedelta(minutes=5)
    """A mail claimed for longer than this without a mark is sent again, under the same id."""
    mail_timeout: timedelta = timedelta(seconds=10)
    reconcile_every: timedelta = timedelta(minutes=15)
    reconcile_days_back: int = 31
    """How far the planner looks for days that have no report."""
    reconcile_batch_max: int = 20
    """Days compared in one pass; the next pass goes on."""
    collect_every: timedelta = timedelta(minutes=15)
    """How often folders are looked into and APIs asked for statements."""
    folder_root: str = ""
    """Local folders that statements may be taken from lie under it; empty: none may."""
    folder_files_max: int = 2_000
    """Files that may lie in one folder."""
    folder_takes_max: int = 20
    """Files taken from one folder at one look; the next look goes on."""
    folder_settled: timedelta = timedelta(minutes=1)
    """A file whose size and time of change are the same for so long is taken as finished."""
    undelivered_every: timedelta = timedelta(hours=1)
    undelivered_first: timedelta = timedelta(hours=24)
    """How far back the first check of a source asks its provider what it could not deliver."""
    recover_alone_max: int = 10_000
    """Major units of any currency that one person may recover; above it a second one agrees."""
    recover_for: timedelta = timedelta(seconds=20)
    """How long one act goes on recovering many; what it does not reach waits for another."""
    statement_bytes_max: int = 1024 * 1024 * 1024
    quarantined_max: int = 1_000
    """Rows of one statement that could not be read; beyond it the whole file is refused."""
    prune_every: timedelta = timedelta(hours=1)
    prune_batches_max: int = 200
    """Batches of ``sweep_batch_max`` rows one pass removes, of each kind of row."""
    notice_tries_max: int = 10

    @property
    def rescue_max(self) -> timedelta:
        """The longest a crashed job waits for its next start: lease, sweep, pickup."""
        return self.lease + self.sweep_every + timedelta(seconds=15)


PACES: dict[str, dict[str, Any]] = {
    "shipped": {},
    # For throw-away and embedded servers only: minutes become seconds, rules stay the same.
    "quick": {
        "lease": timedelta(seconds=3),
        "job_limit": timedelta(seconds=2),
        "sweep_every": timedelta(seconds=1),
        "sweep_late_after": timedelta(seconds=30),
        "start_grace": timedelta(seconds=1),
        "poll_every": timedelta(milliseconds=200),
        "undo": timedelta(seconds=2),
        "alerts_every": timedelta(seconds=2),
        "alert_hold": timedelta(seconds=4),
        "reconcile_every": timedelta(seconds=5),
        "redrive_every": timedelta(seconds=1),
        "shutdown_grace": timedelta(seconds=1),
        # What stands in for the outside world runs beside it.
        "outbound_private_networks": ("127.0.0.0/8",),
    },
}


def pace_name(environment: Mapping[str, str] = os.environ) -> str:
    """Return the pace this process runs at: ``shipped`` unless the environment says otherwise."""
    return environment.get(PACE_VARIABLE, "shipped")


@cache
def conf() -> Conf:
    """Return the settings in force, checked for unknown names."""
    pace = pace_name()
    if pace not in PACES:
        raise ImproperlyConfigured(
            f"{PACE_VARIABLE}={pace!r} is unknown; use one of: {', '.join(PACES)}."
        )
    chosen = dict(getattr(settings, "RELIABILITY", {}))
    unknown = set(chosen) - {f.name for f in fields(Conf)}
    if unknown:
        raise ImproperlyConfigured(
            f"RELIABILITY has unknown settings: {', '.join(sorted(unknown))}. "
            "The known ones are in reliability/conf.py."
        )
    root = os.environ.get(FOLDER_ROOT_VARIABLE, "")
    return replace(Conf(), **(PACES[pace] | {"folder_root": root} | chosen))


def folder_logins() -> Mapping[str, Mapping[str, str]]:
    """Return the logins of folders elsewhere, by ``sftp://host`` or ``s3://bucket``.

    From the setting, or the variable as JSON. Apart from ``Conf``, whose values are shown.
    """
    logins = getattr(settings, FOLDER_LOGINS_VARIABLE, None)
    if logins is None:
        logins = _json_object(os.environ.get(FOLDER_LOGINS_VARIABLE) or "{}")
    found: Mapping[str, Mapping[str, str]] = logins
    return found


def _json_object(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict) or not all(isinstance(v, dict) for v in value.values()):
        raise ImproperlyConfigured(
            f'{FOLDER_LOGINS_VARIABLE} must be JSON: {{"sftp://host": {{"username": …}}}}.'
        )
    return value
