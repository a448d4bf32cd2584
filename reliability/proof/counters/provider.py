"""The fake provider's HTTP door: POST /v1/…, /control; GET /counts, /effects, /mails, /v1/….

POST /v1/anything with `Idempotency-Key` is one request for an effect, form or JSON. POST /control
takes fields of Behaviour as JSON. GET /counts?by_key=1 adds the figures of each key; GET
/v1/anything?idempotency_key=K lists what that key did.
"""

import json
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from .behaviour import changed
from .exchange import Answer, Facts, Request, error, read_parameters
from .ledger import Ledger

BODY_BYTES_MAX = 1024 * 1024
IDLE_SECONDS_MAX = 120


class ProviderServer(ThreadingHTTPServer):
    """Listen on loopback only, one thread a connection."""

    daemon_threads = True
    request_queue_size = 512

    def __init__(self, port: int, ledger: Ledger) -> None:
        self.ledger = ledger
        super().__init__(("127.0.0.1", port), ProviderDoor)


class ProviderDoor(BaseHTTPRequestHandler):
    """One kept-alive connection."""

    server: ProviderServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body leave in one packet
    timeout = IDLE_SECONDS_MAX

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdigit() or int(length) > BODY_BYTES_MAX:
            self.close_connection = True
            self._send(error(413, "invalid_request_error", "A length up to 1 MiB is needed."))
            return
        body = self.rfile.read(int(length))
        try:
            facts = read_parameters(body, self.headers.get("Content-Type", ""))
            answer = self._control(facts) if self.path == "/control" else self._effect(facts)
        except (ValueError, RecursionError) as problem:
            answer = error(400, "invalid_request_error", str(problem))
        self._send(answer)

    def do_GET(self) -> None:
        ledger, url = self.server.ledger, urlsplit(self.path)
        asked = parse_qs(url.query)
        match url.path:
            case "/counts":
                self._send_json(ledger.counts(by_key="by_key" in asked))
            case "/effects":
                self._send_lines(list(ledger.effects))
            case "/mails":
                self._send_lines(list(ledger.mails))
            case path if path.startswith("/v1/") and "idempotency_key" in asked:
                self._send_json(ledger.done_under(asked["idempotency_key"][0]))
            case _:
                self._send(error(404, "invalid_request_error", "No such page."))

    def _effect(self, parameters: Facts) -> Answer:
        ledger, path = self.server.ledger, urlsplit(self.path).path
        if not path.startswith("/v1/"):
            return error(404, "invalid_request_error", "No such page.")
        key = self.headers.get("Idempotency-Key", "")
        begun = ledger.begin(Request(path=path, key=key, parameters=parameters))
        if isinstance(begun, Answer):
            return begun
        time.sleep(ledger.behaviour.latency_ms / 1000)
        answer = ledger.finish(begun)
        time.sleep(ledger.behaviour.answer_latency_ms / 1000)
        return answer

    def _control(self, wishes: Facts) -> Answer:
        ledger = self.server.ledger
        ledger.behaviour = changed(ledger.behaviour, wishes)
        return Answer(status=200, body=vars(ledger.behaviour))

    def _send(self, answer: Answer) -> None:
        if answer.dead_line:
            self.close_connection = True
            return
        headers = {"Idempotent-Replayed": "true"} if answer.replayed else {}
        if answer.status in {429, 503}:
            headers["Retry-After"] = "1"
        self._reply(answer.status, json.dumps(answer.body).encode(), headers)

    def _send_json(self, facts: Facts) -> None:
        self._reply(200, json.dumps(facts).encode(), {})

    def _send_lines(self, lines: list[Facts]) -> None:
        self._reply(200, b"".join(json.dumps(line).encode() + b"\n" for line in lines), {})

    def _reply(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        """Stay silent: the ledger is the log."""
