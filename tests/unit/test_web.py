"""No client holds a web thread longer than its deadline."""

import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from reliability.embedded.place import free_port
from reliability.project import web

ROOT = Path(__file__).resolve().parents[2]
APP = """
from reliability.project import web

web.RECEIVE_SECONDS = 0.5

def application(environ, start_response):
    environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]
"""


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


def connect(port: int) -> socket.socket:
    """Connect to a server that may still be starting."""
    deadline = time.monotonic() + 10
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=5)
        except ConnectionRefusedError:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_the_only_thread_is_free_again_after_a_body_that_never_ends(tmp_path: Path) -> None:
    (tmp_path / "slow_app.py").write_text(APP)
    port = free_port(0)
    options = ["--worker-class=reliability.project.web.DeadlineWorker", "--threads=1"]
    options += ["--no-control-socket", f"--bind=127.0.0.1:{port}", f"--pythonpath={tmp_path}"]
    server = subprocess.Popen(
        [sys.executable, "-m", "gunicorn", *options, "slow_app:application"],
        cwd=ROOT,
        env=os.environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        with connect(port) as slow, connect(port) as good:
            slow.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nx")
            good.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert good.recv(15) == b"HTTP/1.1 200 OK"
            assert slow.recv(15) == b""
    finally:
        server.terminate()
        server.wait()
