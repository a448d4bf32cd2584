"""What becomes of a start: finished, returned or buried, each by one guarded statement.

An empty answer of the database means that somebody else was first. That is an answer, not an
error: the callers here return what happened.
"""

import json
import random
import re
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from psycopg.types.json import Jsonb

from reliability import sql
from reliability.conf import conf
from reliability.errors import JobInterrupted, JobTimeout, PermanentError, RetryLater
from reliability.handlers import DedupeWindow, Kind
from reliability.killing import Point, reach
from reliability.policy import RELEASES_MAX, Bury, Retry, after_failure
from reliability.work.lease import JobId, Leased, worker


@dataclass(frozen=True)
class Done:
    """The handler returned; ``started_at`` is when it began, on this worker's clock."""

    job: Leased
    result: Any
    started_at: datetime


@dataclass(frozen=True)
class Deferred:
    """A handler's result: the effect will be reported by ``complete`` within this time."""

    within: timedelta


@dataclass(frozen=True)
class Failed:
    job: Leased
    kind: Kind
    error: BaseException
    started_at: datetime
    own_job: bool = False
    in_doubt: bool = False
    """An intent mark stands: an outside effect may have happened."""


def finish(done: Sequence[Done]) -> set[int]:
    """Mark jobs done with their attempts; return the ids whose lease was still held."""
    finished = sql.rows(
        "finish_jobs",
        JobId,
        ids=[d.job.id for d in done],
        tokens=[d.job.token for d in done],
        results=[storable(d.result) for d in done],
        started=[d.started_at for d in done],
        worker=worker(),
    )
    return {row.id for row in finished}


def defer(job: Leased, deferred: Deferred, mark: str) -> bool:
    """Leave a job running until its completion is reported; ``False``: the lease was lost."""
    return bool(
        sql.rows(
            "defer_job", JobId, id=job.id, token=job.token, after=deferred.within, worker=mark
        )
    )


def finish_late(done: Done) -> bool:
    """Try to have a result accepted after the lease was lost; for effects that did happen."""
    return bool(
        sql.rows(
            "finish_late",
            JobId,
            id=done.job.id,
            token=done.job.token,
            round=done.job.round,
            result=storable(done.result),
            started=done.started_at,
            worker=worker(),
        )
    )


def fail(failed: Failed) -> Retry | Bury | None:
    """Apply what the policy says of a failure; ``None`` when the lease was lost meanwhile.

    A start cut short by a shutdown is released, at no cost, while nothing outside was begun.
    """
    if (
        isinstance(failed.error, JobInterrupted)
        and not failed.in_doubt
        and release(failed.job)
    ):
        return Retry(timedelta(0))
    verdict = _verdict(failed)
    moved = (
        _return(failed, verdict.after)
        if isinstance(verdict, Retry)
        else _bury(failed, verdict)
    )
    return verdict if moved else None


def release(job: Leased) -> bool:
    """Give an unstarted job back: it costs no attempt, but not more often than 20 times a round."""
    if job.releases - job.round_releases >= RELEASES_MAX:
        return False
    reach(Point.RELEASING)
    return bool(
        sql.rows(
            "return_job", JobId, id=job.id, token=job.token, after=timedelta(0), released=True,
            error_type="", message="", traceback="", worker=worker(), started=job.started_at,
        )
    )  # fmt: skip


def intend(job: Leased) -> bool:
    """Commit the intent mark before the first outside effect; ``False``: the lease was lost."""
    return bool(sql.rows("mark_intent", JobId, id=job.id, token=job.token))


def _verdict(failed: Failed) -> Retry | Bury:
    if failed.in_doubt and not failed.kind.repeatable and _may_have_happened(failed):
        return Bury("unknown", "it failed after it began: the effect may have happened")
    return after_failure(
        failed.kind.policy_for(own_job=failed.own_job),
        failures=failed.job.failures + 1,
        error=failed.error,
        uniform=random.uniform,
    )


def _may_have_happened(failed: Failed) -> bool:
    """Tell whether a marked effect may be in the world although its handler failed.

    A run-once handler's error is its own word; only a start that we cut short leaves a doubt. A
    record-before effect happened at most once, so nothing but the handler's explicit word that it
    did not (``PermanentError``, ``RetryLater``) allows another outcome.
    """
    if isinstance(failed.kind.sink, DedupeWindow):
        return not isinstance(failed.error, PermanentError | RetryLater)
    return isinstance(failed.error, JobInterrupted | JobTimeout)


def _return(failed: Failed, after: timedelta) -> bool:
    return bool(
        sql.rows(
            "return_job", JobId, id=failed.job.id, token=failed.job.token, after=after,
            released=False, worker=worker(), started=failed.started_at, **error_of(failed.error),
        )
    )  # fmt: skip


def _bury(failed: Failed, verdict: Bury) -> bool:
    return bool(
        sql.rows(
            "bury_job", JobId, id=failed.job.id, token=failed.job.token, expired_only=False,
            outcome=verdict.outcome, reason=verdict.reason, attempt="failed", worker=worker(),
            started=failed.started_at, fingerprint=fingerprint(failed.error),
            **error_of(failed.error),
        )
    )  # fmt: skip


def storable(result: Any) -> Jsonb | None:
    """Return a result as it is stored; ``None`` is no result."""
    kept = plain(result)
    return None if kept is None else Jsonb(kept)


def plain(result: Any) -> Any:
    """Return a result as JSON has it, or a note where it is not JSON or too large to keep.

    ``None`` and ``Deferred`` are no results and come back as they are.
    """
    if result is None or isinstance(result, Deferred):
        return result
    try:
        text = json.dumps(result, allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return {"not kept": f"a {type(result).__name__} is not JSON"}
    if not _can_be_stored(text):
        return {"not kept": "too large, or text that cannot be stored"}
    return json.loads(text)


_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
"""An escaped NUL, and no backslash of the text's own with ``u0000`` behind it."""


def _can_be_stored(text: str) -> bool:
    try:
        size = len(text.encode())
    except UnicodeEncodeError:  # a lone surrogate
        return False
    return size <= conf().result_bytes_max and not _NUL.search(text)


def error_of(error: BaseException) -> dict[str, str]:
    """Return an error's type, message and traceback as text that can always be stored."""
    kept = conf()
    lines = "".join(traceback.format_exception(error))
    return {
        "error_type": clean(type(error).__qualname__, 200),
        "message": clean(_message(error), kept.error_bytes_max),
        "traceback": clean(lines[-kept.traceback_bytes_max :], kept.traceback_bytes_max),
    }


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - a hostile __str__ must not cost the verdict
        return "(its text could not be read)"


def clean(text: str, bytes_max: int) -> str:
    """Replace what PostgreSQL cannot hold (NUL, lone surrogates) and cut to a size in bytes."""
    plain = text.replace("\x00", "\N{REPLACEMENT CHARACTER}")
    return plain.encode("utf-8", "replace")[:bytes_max].decode("utf-8", "ignore")


_VARYING = re.compile(
    r"https?://\S+|[\w.+-]+@[\w-]+\.[\w.]+|\b[0-9a-f]{8}-[0-9a-f-]{27}\b"
    r"|\b[A-Za-z]{2,6}_[A-Za-z0-9_]{6,}\b|0x[0-9a-f]+|'[^']*'|\"[^\"]*\"|\d+([.:,-]\d+)*",
)


def fingerprint(error: BaseException) -> str:
    """Name a failure's cause: its type, its message without what varies, the host's own frame."""
    told = _VARYING.sub("…", _message(error))[:200]
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "site-packages" not in frame.filename]
    where = f" in {own[-1].name}" if own else ""
    return clean(f"{type(error).__qualname__}: {told}{where}", 400)
