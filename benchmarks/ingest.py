"""Webhooks accepted, beside the usual view, a bare WSGI application and the bare statements.

    python manage.py bench ingest [--size 4000] [--rounds 3] [--part accept] [--json]

Every contender verifies a Stripe signature and stores the event, behind the same server as `up`
runs. ``accept``: requests a second and their p99 over 16 connections; duplicates beside first
deliveries. ``flood``: p99 of good traffic at a fifth of capacity, alone and beside 1 000 bad
signatures a second. ``batch``: one body of 250 events.
"""

import hashlib
import hmac
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import psycopg
import redis
from django.utils import timezone

from benchmarks.load import Loaded, load, request
from benchmarks.measure import Figures, processes, report
from benchmarks.peers import bare_wsgi
from reliability.embedded import programs
from reliability.embedded.place import free_port
from reliability.models import Source, SourceSecret, Tenant

SECRET = bare_wsgi.SECRET.decode()
ADDRESSES = ("DATABASE_URL", "BROKER_URL")
PEER_TABLE = """
CREATE TABLE IF NOT EXISTS peer_event (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, event_id text NOT NULL UNIQUE,
    body jsonb NOT NULL, received_at timestamptz NOT NULL)
"""
OURS, USUAL, BARE = "reliability.project.wsgi", "usual_view", "bare_wsgi"
BATCH = 250
BAD_PER_SECOND = 1_000


class Bench:
    """One database, emptied between measurements, and the sources of ours."""

    def __init__(self, requests: int) -> None:
        self.requests = requests
        self.db = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)
        self.db.execute(PEER_TABLE)
        tenant, _ = Tenant.objects.get_or_create(slug="bench", defaults={"name": "Bench"})
        self.stripe = _source(tenant, "stripe", {"charge.succeeded": "bench.local"})
        self.gocardless = _source(tenant, "gocardless", {"payments.confirmed": "bench.local"})
        os.environ["BENCH_TENANT"] = str(tenant.pk)
        os.environ["BENCH_SOURCE"] = str(self.stripe.pk)

    def clear(self) -> None:
        redis.Redis.from_url(os.environ["BROKER_URL"]).flushdb()
        self.db.execute(
            "TRUNCATE peer_event, reliability_job, reliability_processedkey, "
            "reliability_body, reliability_delivery, reliability_receipt, "
            "reliability_deadletter, reliability_operation, reliability_attempt CASCADE"
        )

    @contextmanager
    def server(self, contender: str) -> Iterator[int]:
        """Run a contender behind the deployment's own web program."""
        port = free_port(0)
        *options, ours = programs.web(port).arguments
        named = ours if contender == OURS else f"benchmarks.peers.{contender}:application"
        environment = dict(os.environ)
        if contender == OURS:
            environment = {k: v for k, v in environment.items() if k not in ADDRESSES}
            environment |= {"RELIABILITY_PROCESS": "web"}
        else:
            environment.pop("DJANGO_SETTINGS_MODULE", None)
        with processes([[*options, named]], environment):
            _wait(port, self.path(contender))
            yield port

    def path(self, contender: str) -> str:
        return f"/hooks/{self.stripe.endpoint_token}/" if contender == OURS else "/hook/"

    def run(self, contender: str) -> Loaded:
        self.clear()
        sent = good(self.path(contender), self.requests)
        with self.server(contender) as port:
            load(port, good(self.path(contender), 200))
            return _checked(load(port, sent))

    def bare_statements(self) -> float:
        """The same two statements over two connections, without HTTP."""
        self.clear()
        bodies = [event() for _ in range(self.requests)]

        def run(mine: list[bytes]) -> None:
            for body in mine:
                bare_wsgi.store(body, json.loads(body))

        threads = [threading.Thread(target=run, args=(bodies[n::2],)) for n in range(2)]
        began = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return len(bodies) / (time.perf_counter() - began)


def _source(tenant: Tenant, preset: str, routes: dict[str, str]) -> Source:
    source, made = Source.objects.get_or_create(
        tenant=tenant, slug=f"bench-{preset}",
        defaults={"preset": preset, "scheme": preset, "routes": routes},
    )  # fmt: skip
    if made:
        SourceSecret.objects.rotate(source, SECRET, overlap_until=timezone.now())
    return source


def event() -> bytes:
    now, key = int(time.time()), uuid4().hex
    thing = {"id": f"ch_{key}", "object": "charge", "amount": 1000, "currency": "eur",
             "created": now, "captured": True, "description": "x" * 200}  # fmt: skip
    told = {"id": f"evt_{key}", "object": "event", "type": "charge.succeeded", "created": now,
            "data": {"object": thing}}  # fmt: skip
    return json.dumps(told).encode()


def signature(body: bytes, secret: str = SECRET) -> dict[str, str]:
    now = int(time.time())
    mac = hmac.new(secret.encode(), f"{now}.".encode() + body, hashlib.sha256).hexdigest()
    return {"Stripe-Signature": f"t={now},v1={mac}"}


def good(path: str, count: int) -> list[bytes]:
    bodies = [event() for _ in range(count)]
    return [request(path, body, signature(body)) for body in bodies]


def bad(path: str, count: int) -> list[bytes]:
    body = event()
    return [request(path, body, signature(body, "whsec_somebody else's"))] * count


def _wait(port: int, path: str) -> None:
    until = time.monotonic() + 30
    while time.monotonic() < until:
        try:
            load(port, bad(path, 1), connections=1)
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise TimeoutError("the server did not come up")


def _checked(loaded: Loaded) -> Loaded:
    if set(loaded.statuses) != {200}:
        raise RuntimeError(f"not every request was accepted: {loaded.statuses}")
    return loaded


def accept(bench: Bench, count: int) -> Iterator[Figures]:
    rate = Figures("webhooks accepted, 16 connections", "req/s")
    p99 = Figures("webhooks accepted, p99", "ms", lower_is_better=True)
    names = {OURS: "ours", USUAL: "view + get_or_create + on_commit(delay)", BARE: "limit"}
    for _ in range(count):
        for contender, name in names.items():
            found = bench.run(contender)
            rate.add(name, found.rate)
            p99.add(name, found.percentile(0.99))
            _say(rate.name, name, found)
        rate.add("bare SQL, no HTTP", bench.bare_statements())
    yield rate
    yield p99
    repeats = Figures("webhooks repeated, beside first deliveries", "req/s")
    for _ in range(count):
        bench.clear()
        sent = good(bench.path(OURS), bench.requests)
        with bench.server(OURS) as port:
            load(port, good(bench.path(OURS), 200))
            repeats.add("first deliveries", _checked(load(port, sent)).rate)
            repeats.add("ours", _checked(load(port, sent)).rate)
    yield repeats


def flood(bench: Bench, count: int) -> Iterator[Figures]:
    figures = Figures("p99 at a fifth of capacity beside bad signatures", "ms",
                      lower_is_better=True)  # fmt: skip
    path = bench.path(OURS)
    for _ in range(count):
        bench.clear()
        with bench.server(OURS) as port:
            capacity = load(port, good(path, bench.requests // 2)).rate
            some = max(int(capacity), 200)
            pace = capacity / 5
            alone = load(port, good(path, some), connections=4, per_second=pace)
            seconds = some / pace
            flooding = threading.Thread(target=_flood, args=(port, path, seconds))
            flooding.start()
            beside = load(port, good(path, some), connections=4, per_second=pace)
            flooding.join()
        figures.add("alone", _checked(alone).percentile(0.99))
        figures.add("ours", _checked(beside).percentile(0.99))
        _say(figures.name, "ours", beside)
    yield figures


def _flood(port: int, path: str, seconds: float) -> None:
    load(
        port, bad(path, int(BAD_PER_SECOND * seconds)), connections=8,
        per_second=BAD_PER_SECOND,
    )  # fmt: skip


def batch(bench: Bench, count: int) -> Iterator[Figures]:
    figures = Figures("one body of 250 events", "ms", lower_is_better=True)
    figures.limit = [500.0] * count  # the ceiling the product sets itself
    path = f"/hooks/{bench.gocardless.endpoint_token}/"
    with bench.server(OURS) as port:
        for _ in range(count):
            bench.clear()
            sent = [_batch_request(path) for _ in range(10)]
            found = _checked(load(port, sent, connections=1))
            figures.add("ours", found.percentile(0.5))
            _say(figures.name, "ours", found)
    yield figures


def _batch_request(path: str) -> bytes:
    events = [
        {"id": f"EV{uuid4().hex}", "resource_type": "payments", "action": "confirmed",
         "created_at": timezone.now().isoformat(), "links": {"payment": f"PM{uuid4().hex}"}}
        for _ in range(BATCH)
    ]  # fmt: skip
    body = json.dumps({"events": events}).encode()
    mac = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    return request(path, body, {"Webhook-Signature": mac})


def _say(what: str, name: str, found: Loaded) -> None:
    print(f"{what} {name}: {found.rate:.0f} req/s, p50 {found.percentile(0.5):.1f} ms, "
          f"p99 {found.percentile(0.99):.1f} ms", file=sys.stderr)  # fmt: skip


PARTS = {"accept": accept, "flood": flood, "batch": batch}


def main(*, size: int | None, rounds: int, parts: list[str], as_json: bool) -> None:
    bench = Bench(size or 4_000)
    found = [figures for part in parts for figures in PARTS[part](bench, rounds)]
    report(found, as_json=as_json)
