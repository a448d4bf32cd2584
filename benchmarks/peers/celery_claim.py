"""Celery over Redis with the same guarantee, the usual hand-written way: claim and fence in SQL."""

import os

from celery import Celery

from benchmarks.peers.effect import INSERT, connection, happen

app = Celery("celery_claim", broker=os.environ["BROKER_URL"])
app.conf.update(task_ignore_result=True, broker_connection_retry_on_startup=True)

SCHEMA = """
CREATE TABLE peer_job (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key text NOT NULL UNIQUE,
    state smallint NOT NULL DEFAULT 0, starts smallint NOT NULL DEFAULT 0,
    token bigint NOT NULL DEFAULT 0, lease_until timestamptz, finished_at timestamptz);
CREATE TABLE peer_attempt (
    job_id bigint NOT NULL, number smallint NOT NULL, started_at timestamptz NOT NULL,
    finished_at timestamptz, PRIMARY KEY (job_id, number));
"""
CLAIM = """
WITH claimed AS (
    UPDATE peer_job SET state = 1, starts = starts + 1, token = token + 1,
                        lease_until = now() + interval '60 s'
    WHERE id = %s AND state = 0 RETURNING id, starts, token, key),
written AS (
    INSERT INTO peer_attempt SELECT id, starts, now() FROM claimed)
SELECT id, starts, token, key FROM claimed
"""
DONE = """
WITH done AS (
    UPDATE peer_job SET state = 2, finished_at = now(), lease_until = NULL
    WHERE id = %s AND token = %s AND state = 1 RETURNING id, starts)
UPDATE peer_attempt a SET finished_at = now() FROM done
WHERE a.job_id = done.id AND a.number = done.starts
"""


@app.task
def same_guarantee(job_id: int) -> None:
    claimed = connection().execute(CLAIM, [job_id]).fetchone()
    if claimed is None:
        return
    with connection().transaction():
        connection().execute(INSERT, [claimed[3]])
        if connection().execute(DONE, [job_id, claimed[2]]).rowcount != 1:
            raise RuntimeError("taken over")


@app.task
def plain(key: str) -> None:
    """No state in PostgreSQL at all: what Celery does by itself."""
    happen(key)
