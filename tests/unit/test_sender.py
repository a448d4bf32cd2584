"""Deliveries are sent as providers send them: signed, and again where the door was not ready."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from reliability.proof import post
from reliability.proof.cast import StoryDelivery
from reliability.proof.post import Address, Answered, Sender
from reliability.proof.story import Story

ADDRESSES = {
    "acme-stripe": Address("/hooks/s/", "whsec_abc"),
    "borealis-shop": Address("/hooks/b/", "whsec_" + "QUJD" * 8),
    "acme-billing": Address("/hooks/i/", "secret"),
}
STORY = Story(seed=1, events=12, day=date(2026, 11, 29), repeats_per_hundred=0)


@contextmanager
def door(answer: Callable[[int], int]) -> Iterator[tuple[int, list[str]]]:
    """Answer the n-th request (from 1) with a status; 0 hangs up."""
    paths: list[str] = []

    class Door(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            paths.append(self.path)
            if not (status := answer(len(paths))):
                self.close_connection = True
                return
            body = json.dumps({"status": "accepted"}).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Door)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1], paths
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(post, "WAIT_FIRST", 0.001)


@contextmanager
def sender(port: int) -> Iterator[Sender]:
    made = Sender(port, ADDRESSES)
    with closing(made):
        yield made


def one() -> StoryDelivery:
    return STORY.deliveries()[0]


def test_a_delivery_that_was_not_taken_is_sent_again_until_it_is() -> None:
    with door(lambda n: {1: 503, 2: 0}.get(n, 200)) as (port, paths), sender(port) as provider:
        answered = provider.send(one())
    assert (answered.status, answered.said, answered.before) == (200, "accepted", (503, 0))
    assert answered.taken
    assert len(paths) == 3


def test_a_refusal_for_good_is_not_sent_again() -> None:
    with door(lambda _: 401) as (port, paths), sender(port) as provider:
        answered = provider.send(one())
    assert (answered.status, answered.before, answered.taken) == (401, (), False)
    assert len(paths) == 1


def test_nobody_waits_for_ever_for_a_door_that_stays_shut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(post, "AGAIN_WITHIN_SECONDS", 0.05)
    with door(lambda _: 503) as (port, _paths), sender(port) as provider:
        answered = provider.send(one())
    assert (answered.status, answered.taken) == (503, False)


def test_all_are_sent_each_to_its_sources_address_and_each_is_told() -> None:
    told: list[Answered] = []
    with door(lambda _: 200) as (port, paths):
        answers = Sender(port, ADDRESSES).send_all(STORY.deliveries(), told.append)
    assert [answer.delivery for answer in answers] == list(STORY.deliveries())
    assert len(told) == 12
    assert set(paths) == {"/hooks/s/", "/hooks/b/", "/hooks/i/"}
