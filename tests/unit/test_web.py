"""No client holds a web thread longer than its deadline."""

import socket
import threading
import time

import pytest

from reliability.project import web


@pytest.fixture
def pair() -> "tuple[web.DeadlineSocket, socket.socket]":
    ours, theirs = socket.socketpair()
    return web.DeadlineSocket(ours), theirs


def test_a_client_that_sends_a_byte_now_and_then_is_cut_off_at_the_deadline(
    pair: "tuple[web.DeadlineSocket, socket.socket]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "RECEIVE_SECONDS", 0.2)
    ours, theirs = pair
    done = threading.Event()

    def dribble() -> None:
        while not done.wait(0.02):
            theirs.send(b"x")

    thread = threading.Thread(target=dribble)
    thread.start()
    ours.start_clock()
    began = time.monotonic()
    with pytest.raises(ConnectionResetError):
        list(iter(lambda: ours.recv(1), b""))
    done.set()
    thread.join()

    assert time.monotonic() - began < 2
    ours.close()
    theirs.close()


def test_a_client_that_sends_nothing_is_cut_off_at_the_deadline(
    pair: "tuple[web.DeadlineSocket, socket.socket]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "RECEIVE_SECONDS", 0.05)
    ours, theirs = pair
    ours.start_clock()

    with pytest.raises(ConnectionResetError):
        ours.recv(1)
    ours.close()
    theirs.close()


def test_a_client_that_does_not_read_its_answer_is_cut_off(
    pair: "tuple[web.DeadlineSocket, socket.socket]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "SEND_SECONDS", 0.05)
    ours, theirs = pair

    with pytest.raises(ConnectionResetError):
        ours.sendall(bytes(50_000_000))
    ours.close()
    theirs.close()
