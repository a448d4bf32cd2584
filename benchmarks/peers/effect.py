"""What every contender's job does: one idempotent insert, stamped by the database's clock."""

import os
import threading

import psycopg

TABLE = """
CREATE TABLE IF NOT EXISTS effect (
    key text PRIMARY KEY, at timestamptz NOT NULL DEFAULT clock_timestamp())
"""
INSERT = "INSERT INTO effect (key) VALUES (%s) ON CONFLICT DO NOTHING"
_own = threading.local()


def connection() -> psycopg.Connection:
    """Return this thread's autocommit connection, opened after any fork."""
    if getattr(_own, "pid", None) != os.getpid():
        _own.connection = psycopg.connect(os.environ["EFFECT_URL"], autocommit=True)
        _own.connection.prepare_threshold = 1
        _own.pid = os.getpid()
    return _own.connection


def happen(key: str) -> None:
    connection().execute(INSERT, [key])
