"""The counters' process: both doors, one ledger, one line of JSON when ready."""

import argparse
import json
import os
import signal
import socketserver
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from .behaviour import Behaviour
from .ledger import Ledger
from .mail import MailServer
from .provider import ProviderServer

PARENT_CHECK_SECONDS = 1.0


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until SIGTERM, SIGINT or, with --follow-parent, the end of the starting process.

    Prints `{"http_port": …, "smtp_port": …, "store": …, "pid": …}` once both doors listen; the
    store is F/sink.jsonl and is continued when it exists. Port 0 picks a free one.
    """
    options = _options().parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    behaviour = Behaviour(
        key_check=not options.no_key_check,
        window_seconds=options.window,
        latency_ms=options.latency_ms,
    )
    store = options.folder / "sink.jsonl"
    ledger = Ledger(store, behaviour, seed=options.seed, clock=time.time)
    provider = ProviderServer(options.port, ledger)
    mail = MailServer(options.smtp_port, ledger)
    ended = _ended_by_signal()
    _serve(provider, mail)
    ports = {"http_port": provider.server_address[1], "smtp_port": mail.server_address[1]}
    _announce({**ports, "store": str(store), "pid": os.getpid()})
    parent = os.getppid()
    while not ended.wait(PARENT_CHECK_SECONDS):
        if options.follow_parent and os.getppid() != parent:
            return


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="sink.py", description=main.__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--smtp-port", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0, help="of the drawn faults")
    parser.add_argument("--window", type=float, default=24 * 3600.0, help="seconds")
    parser.add_argument("--latency-ms", type=float, default=0.0)
    parser.add_argument("--no-key-check", action="store_true", help="every request counts")
    parser.add_argument("--follow-parent", action="store_true")
    return parser


def _ended_by_signal() -> threading.Event:
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    return ended


def _serve(*servers: socketserver.BaseServer) -> None:
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()


def _announce(facts: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()
