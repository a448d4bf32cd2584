"""Bad settings and unkeepable promises are found at start, not by the first event of the night."""

import logging
from datetime import timedelta
from typing import Any

from django.core.checks import ERROR, CheckMessage, Error, run_checks
from django.core.checks import Warning as Doubt

from reliability.conf import Conf, conf
from reliability.handlers import REMEDIES, Kind, kinds, lacks_sink
from reliability.policy import Backoff, Pace, RunOnce, WorstCase, worst_case

logger = logging.getLogger(__name__)

USER_FACING_ATTEMPTS = range(3, 6)


def pace_of(kind: Kind, settings: Conf) -> Pace:
    """Return the times around a kind's policy: its own limit, the engine's lease and sweep."""
    return Pace(
        limit=kind.deadline or kind.limit or settings.job_limit,
        lease=settings.lease + (kind.deadline or timedelta(0)),
        sweep=settings.sweep_every,
        pickup=settings.start_grace + settings.sweep_every,
    )


def worst_case_of(kind: Kind, *, own_job: bool = False) -> WorstCase:
    """Return the kind's S with its four terms, at the settings in force."""
    return worst_case(kind.policy_for(own_job=own_job), pace_of(kind, conf()))


def too_short(kind: Kind) -> str:
    """Return why the kind's window does not outlast its worst case, or an empty string.

    Both figures are named, with the remedy (semantics of windows: a key that the downstream
    forgot before our own schedule ends would let a repeat take effect).
    """
    worst = max(worst_case_of(kind, own_job=own).total for own in (False, True))
    if kind.window is None or isinstance(kind.policy, RunOnce) or kind.window >= worst:
        return ""
    return (
        f"{kind.name!r} may take {worst} at worst, but its sink forgets the key after "
        f"{kind.window}. Choose fewer attempts, a shorter cap or limit, or a sink with a "
        "longer window."
    )


def every_kind_recognises_a_repeat(**_: Any) -> list[CheckMessage]:
    return [
        Error(
            f"{kind.name!r} has retries and no sink.",
            hint=f"{REMEDIES}.",
            id="reliability.E010",
        )
        for kind in kinds()
        if lacks_sink(kind)
    ]


def every_window_outlasts_its_policy(**_: Any) -> list[CheckMessage]:
    return [Error(why, id="reliability.E011") for kind in kinds() if (why := too_short(kind))]


def every_limit_fits_the_lease(**_: Any) -> list[CheckMessage]:
    lease = conf().lease
    return [
        Error(
            f"{kind.name!r} may run {kind.limit}, longer than the lease of {lease}.",
            hint="Shorten its limit or lengthen RELIABILITY['lease'].",
            id="reliability.E012",
        )
        for kind in kinds()
        if kind.limit and kind.limit >= lease
    ]


def every_heartbeat_keeps_its_lease(**_: Any) -> list[CheckMessage]:
    lease = conf().lease
    return [
        Error(
            f"{kind.name!r} beats every {kind.heartbeat}: one late beat loses the lease of {lease}.",
            hint="Beat at least twice a lease.",
            id="reliability.E013",
        )
        for kind in kinds()
        if kind.heartbeat and kind.heartbeat * 2 > lease
    ]


def user_facing_kinds_answer_soon(**_: Any) -> list[CheckMessage]:
    return [
        Doubt(
            f"{kind.name!r} has somebody waiting, and {kind.policy.attempts} attempts.",
            hint="Use 3 to 5 attempts for a user-facing kind.",
            id="reliability.W011",
        )
        for kind in kinds()
        if isinstance(kind.policy, Backoff)
        and kind.policy.user_facing
        and kind.policy.attempts not in USER_FACING_ATTEMPTS
    ]


def settings_are_sane(**_: Any) -> list[CheckMessage]:
    found: list[CheckMessage] = []
    settings = conf()
    if settings.job_limit >= settings.lease:
        found.append(
            Error(
                f"RELIABILITY['job_limit'] ({settings.job_limit}) must be shorter than "
                f"RELIABILITY['lease'] ({settings.lease}).",
                id="reliability.E001",
            )
        )
    if settings.alert_low > settings.alert_high:
        found.append(
            Error(
                "RELIABILITY['alert_low'] must not be above RELIABILITY['alert_high'].",
                id="reliability.E002",
            )
        )
    return found


ALL = (
    every_heartbeat_keeps_its_lease,
    every_kind_recognises_a_repeat,
    every_limit_fits_the_lease,
    every_window_outlasts_its_policy,
    settings_are_sane,
    user_facing_kinds_answer_soon,
)


def refuse_to_start() -> None:
    """End this process, one line a fault, where a check finds an error: for web and workers.

    Management commands run the checks by themselves.
    """
    found = [message for message in run_checks() if message.level >= ERROR]
    for message in found:
        logger.error("%s %s (%s)", message.msg, message.hint or "", message.id)
    if found:
        raise SystemExit(1)
