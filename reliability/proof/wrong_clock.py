"""Sets the clock of one process wrong, as far as Python and Django are asked for the time.

It does so when it is imported: it stands among a worker's handlers.
"""

import os
import time
from collections.abc import Mapping
from datetime import timedelta

from django.utils import timezone

VARIABLE = "STORY_CLOCK_AHEAD_SECONDS"
AHEAD = timedelta(minutes=15)


def set_wrong(environment: Mapping[str, str] = os.environ) -> None:
    """Run ahead by the seconds that the variable says, for as long as this process lives."""
    ahead = float(environment.get(VARIABLE) or 0)
    if not ahead:
        return
    true_time, true_now = time.time, timezone.now
    time.time = lambda: true_time() + ahead
    timezone.now = lambda: true_now() + timedelta(seconds=ahead)


set_wrong()
