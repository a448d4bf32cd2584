"""Nothing but the duty: verify the signature, run the very statement of the claim, answer."""

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
SECRET = b"whsec_of_a_benchmark"

_thread = threading.local()


def store(body: bytes, event: dict[str, Any]) -> None:
    """Claim and record one event, on this thread's connection."""
    connection = getattr(_thread, "connection", None)
    if connection is None:
        connection = _thread.connection = psycopg.connect(
            os.environ["DATABASE_URL"], autocommit=True,
            options="-c plan_cache_mode=force_generic_plan",
        )  # fmt: skip
    thing = event["data"]["object"]
    row = {
        "n": 1, "d": 1, "tenant_id": int(os.environ["BENCH_TENANT"]),
        "source_id": int(os.environ["BENCH_SOURCE"]), "key": event["id"], "kind": "bench.local", "queue": "local",
        "downstream_key": str(uuid.uuid4()), "asked_by": "", "operation_class": "charge",
        "reference": thing["id"], "amount_minor": thing["amount"], "currency": "EUR",
        "exponent": 2, "occurred_at": None, "held": "", "unconfirmed": False, "outcome": None,
        "reason": None, "headers": {}, "replayable": False,
    }  # fmt: skip
    delivery = {
        "d": 1, "tenant_id": row["tenant_id"], "source_id": row["source_id"],
        "peer": "127.0.0.1", "size_bytes": len(body), "answer": 200, "scheme": "stripe",
        "sha256": hashlib.sha256(body).hexdigest(), "verifier_version": 1,
    }  # fmt: skip
    connection.execute(
        CLAIM,
        {"now": datetime.now(UTC), "events": Jsonb([row]), "bodies": [body],
         "deliveries": Jsonb([delivery])},
        prepare=True,
    ).fetchall()  # fmt: skip


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
