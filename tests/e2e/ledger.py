"""Books charges, and fails while its ledger is closed: the cause that an on-call engineer mends.

Imported where RELIABILITY_HANDLERS names it: by the workers and the web server of that story.
"""

import os
from datetime import timedelta
from pathlib import Path

from reliability import Backoff, Event, LocalTransaction, handler

KIND = "stripe.charge.succeeded"
CLOSED = "TEST_LEDGER_CLOSED"
"""Names the variable that names a file: while the file exists, the ledger is closed."""
SOON = Backoff(first=timedelta(milliseconds=50), cap=timedelta(milliseconds=100), attempts=2)


class LedgerClosed(Exception):
    """The ledger takes no bookings."""


@handler(KIND, sink=LocalTransaction(), policy=SOON)
def book(event: Event) -> None:
    """Book nothing in particular."""
    if Path(os.environ[CLOSED]).exists():
        raise LedgerClosed("closed for October")
