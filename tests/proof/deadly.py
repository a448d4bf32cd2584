"""A kind whose jobs end their worker's process where told to: what no handler can catch."""

import os
import signal

from reliability import Event, LocalTransaction, handler


@handler("deadly", sink=LocalTransaction())
def handle(event: Event) -> None:
    if event.payload["kills"]:
        os.kill(os.getpid(), signal.SIGKILL)
