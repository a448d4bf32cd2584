"""Start the embedded Valkey: a doorbell, so nothing of it is kept on disk."""

import signal
from collections.abc import Callable
from typing import Final

import redis

from reliability.embedded.binaries import Binaries
from reliability.embedded.place import Place, Server, wait_until_ready

STOP_SIGNALS: Final = (signal.SIGTERM,)


def launch(place: Place, binaries: Binaries, remember: Callable[[Server], None]) -> None:
    """Start Valkey on loopback with a password, which travels by pipe and not by arguments."""
    configuration = (
        f"port {place.ports['valkey']}\n"
        "bind 127.0.0.1\n"
        f"requirepass {place.passwords['valkey']}\n"
        'save ""\nappendonly no\nloglevel warning\n'
        "maxmemory 256mb\nmaxmemory-policy noeviction\n"
    )
    server = place.spawn("valkey", [binaries.valkey, "-"], stdin=configuration)
    remember(server)
    wait_until_ready(server, lambda: _answers(place), place=place, name="valkey")


def _answers(place: Place) -> bool:
    client = redis.Redis(
        port=place.ports["valkey"], password=place.passwords["valkey"], socket_timeout=5
    )
    try:
        return bool(client.ping())
    except redis.exceptions.ConnectionError:
        return False
    finally:
        client.close()
