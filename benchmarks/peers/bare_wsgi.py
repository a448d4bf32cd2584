"""Nothing but the duty: verify the signature, run the very statements of the claim, answer."""

import hashlib
import hmac
import json
import os
import threading
import uuid
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

SQL = Path(__file__).resolve().parents[2] / "reliability" / "sql"
CLAIM = (SQL / "claim_events.sql").read_text().encode()
RECORD = (SQL / "record_receipts.sql").read_text().encode()
SECRET = b"whsec_of_a_benchmark"

_thread = threading.local()


def store(body: bytes, event: dict[str, Any]) -> None:
    """Claim and record one event in one transaction, on this thread's connection."""
    connection = getattr(_thread, "connection", None)
    if connection is None:
        connection = _thread.connection = psycopg.connect(os.environ["DATABASE_URL"])
        connection.prepare_threshold = 1
    thing = event["data"]["object"]
    row = {
        "n": 1, "key": event["id"], "kind": "bench.local", "queue": "local",
        "downstream_key": str(uuid.uuid4()), "asked_by": "", "operation_class": "charge",
        "reference": thing["id"], "amount_minor": thing["amount"], "currency": "EUR",
        "exponent": 2, "occurred_at": None, "held": "", "unconfirmed": False, "outcome": None,
        "reason": None, "headers": {}, "replayable": False,
    }  # fmt: skip
    delivery = {
        "peer": "127.0.0.1", "size_bytes": len(body), "answer": 200, "scheme": "stripe",
        "sha256": hashlib.sha256(body).hexdigest(), "verifier_version": 1,
    }  # fmt: skip
    scope = {
        "tenant_id": int(os.environ["BENCH_TENANT"]),
        "source_id": int(os.environ["BENCH_SOURCE"]),
        "now": datetime.now(UTC),
        "bodies": [body],
    }
    with connection.transaction():
        fresh = connection.execute(CLAIM, scope | {"events": Jsonb([row])}).fetchall()
        connection.execute(
            RECORD,
            scope
            | {"events": Jsonb([row | {"fresh": bool(fresh)}]), "delivery": Jsonb(delivery)},
        ).fetchall()


def application(
    environ: dict[str, Any], start: Callable[[str, list[tuple[str, str]]], object]
) -> Iterable[bytes]:
    body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
    fields = dict(part.split("=", 1) for part in environ["HTTP_STRIPE_SIGNATURE"].split(","))
    mac = hmac.new(SECRET, f"{fields['t']}.".encode() + body, hashlib.sha256).hexdigest()
    if not hmac.compare_digest(mac, fields["v1"]):
        start("401 Unauthorized", [("Content-Length", "0")])
        return [b""]
    store(body, json.loads(body))
    start("200 OK", [("Content-Length", "2")])
    return [b"ok"]
