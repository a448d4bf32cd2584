"""A policy as the calculators' options describe it."""

from datetime import timedelta
from typing import Any

from django.core.management.base import CommandError, CommandParser

from reliability.errors import UseRunOnce
from reliability.policy import ATTEMPTS_MAX, Backoff

CAP_SECONDS = 3600.0
SECONDS_MAX = 1e9


def describe_policy(parser: CommandParser, *, first: float | None) -> None:
    """Add the options ``--first``, ``--factor`` and ``--cap``, in seconds."""
    parser.add_argument("--first", type=float, default=first, help="first wait, seconds")
    parser.add_argument("--factor", type=float, default=2.0)
    parser.add_argument(
        "--cap", type=float, default=CAP_SECONDS, help="longest wait, seconds (an hour)"
    )


def asked_policy(options: dict[str, Any], *, attempts: int) -> Backoff:
    """Return the policy asked for; ends with one line where there is no such policy."""
    if not 1 < attempts <= ATTEMPTS_MAX:
        raise CommandError(f"A policy with retries has 2 to {ATTEMPTS_MAX} attempts.")
    try:
        return Backoff(
            first=_seconds(options["first"]),
            cap=_seconds(max(options["cap"], options["first"])),
            attempts=attempts,
            factor=options["factor"],
        )
    except (ValueError, UseRunOnce) as err:
        raise CommandError(str(err)) from None


def _seconds(number: float) -> timedelta:
    if not 0 < number <= SECONDS_MAX:  # NaN fails this too
        raise CommandError(f"A wait must be above 0 and at most {SECONDS_MAX:.0f} seconds.")
    return timedelta(seconds=number)
