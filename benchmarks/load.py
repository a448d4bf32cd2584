"""Send prepared requests over a few keep-alive connections, as fast as they are answered."""

import socket
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass


@dataclass(frozen=True)
class Loaded:
    """What a run gave: requests a second, waits in ms (sorted), answers by status."""

    rate: float
    waits_ms: Sequence[float]
    statuses: dict[int, int]

    def percentile(self, share: float) -> float:
        return self.waits_ms[min(int(len(self.waits_ms) * share), len(self.waits_ms) - 1)]


def request(path: str, body: bytes, headers: dict[str, str]) -> bytes:
    named = {"Host": "127.0.0.1", "Content-Type": "application/json",
             "Content-Length": str(len(body)), **headers}  # fmt: skip
    lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in named.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


def load(
    port: int, requests: Sequence[bytes], *, connections: int = 16, per_second: float = 0
) -> Loaded:
    """Send every request once; ``per_second`` paces them over all connections."""
    waits: list[float] = []
    statuses: dict[int, int] = {}
    lock = threading.Lock()
    began = time.perf_counter()

    def run(number: int) -> None:
        mine = requests[number::connections]
        with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
            for nth, one in enumerate(mine):
                if per_second:
                    due = began + (nth * connections + number) / per_second
                    time.sleep(max(0.0, due - time.perf_counter()))
                at = time.perf_counter()
                client.sendall(one)
                status = _answer(client)
                with lock:
                    waits.append(1000 * (time.perf_counter() - at))
                    statuses[status] = statuses.get(status, 0) + 1

    with ThreadPoolExecutor(connections) as threads:
        for ended in [threads.submit(run, number) for number in range(connections)]:
            ended.result()
    seconds = time.perf_counter() - began
    return Loaded(len(waits) / seconds, sorted(waits), statuses)


def _answer(client: socket.socket) -> int:
    heard = b""
    while b"\r\n\r\n" not in heard:
        heard += client.recv(65_536) or _closed()
    head, _, body = heard.partition(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n"):
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    while len(body) < length:
        body += client.recv(65_536) or _closed()
    return int(head.split(b" ", 2)[1])


def _closed() -> bytes:
    raise ConnectionError("the server closed the connection")
