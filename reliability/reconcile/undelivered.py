"""The hourly provisional check: what a provider could not deliver is fetched before the statement."""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from types import MappingProxyType

from django.utils import timezone

from reliability.claim.backlog import TakenIn, take_in
from reliability.conf import conf
from reliability.errors import AddressRefused, NoAnswer, TryAgain
from reliability.models import ProvisionalCheck, Run, Source
from reliability.models.sealing import CannotUnseal
from reliability.reconcile.providers import stripe_events
from reliability.reconcile.providers.asking import OVERLAP
from reliability.reconcile.providers.provided import CannotFetch, ListEvents
from reliability.reconcile.windows import WINDOWS

logger = logging.getLogger(__name__)

JOB = "undelivered"
PROVIDERS: Mapping[str, ListEvents] = MappingProxyType({"stripe": stripe_events.undelivered})
"""Scheme to the list of what an endpoint has not acknowledged."""
WHY_CHARACTERS_MAX = 500


@dataclass(frozen=True)
class Checked:
    """What one pass did, over all sources."""

    sources: int = 0
    accepted: int = 0
    known: int = 0
    failed: int = 0


def check_undelivered(trigger: str) -> Checked:
    """Take in what providers list as undelivered since the last good check; record the pass.

    Only sources with an API credential are asked. Every event goes through the claim, so one
    that arrives meanwhile, or that a check before took in, stays one. A provider that cannot
    be asked is named in its check, and the next pass begins where the last good one ended.
    """
    started_at = timezone.now()
    checks = [_check(source, started_at) for source in _asked_of()]
    checked = Checked(
        sources=len(checks),
        accepted=sum(one.accepted for one in checks),
        known=sum(one.known for one in checks),
        failed=sum(bool(one.why) for one in checks),
    )
    Run.objects.create(
        job=JOB, trigger=trigger, started_at=started_at, ended_at=timezone.now(),
        ok=not checked.failed, facts=asdict(checked),
    )  # fmt: skip
    return checked


def _asked_of() -> Iterator[Source]:
    sources = Source.objects.filter(internal=False, paused_at=None, scheme__in=PROVIDERS)
    return sources.exclude(api_credential=None).order_by("pk").iterator()


def _check(source: Source, now: datetime) -> ProvisionalCheck:
    since = _since(source, now)
    total, why = TakenIn(), ""
    try:
        listed = PROVIDERS[source.scheme](source, since, now)
        for taken in take_in(source, listed, trusted=True):
            total += taken
    except (CannotFetch, AddressRefused, NoAnswer, CannotUnseal, TryAgain) as error:
        why = str(error)[:WHY_CHARACTERS_MAX]
        logger.warning("provider_not_asked", extra={"source": source.pk, "why": why})
    return ProvisionalCheck.objects.create(
        tenant_id=source.tenant_id,
        source=source,
        asked_at=now,
        from_at=since,
        accepted=total.accepted,
        known=total.duplicate + total.absorbed + total.conflict,
        why=why,
    )


def _since(source: Source, now: datetime) -> datetime:
    """Begin a little before the last good check, as far back as the provider can be asked."""
    good = ProvisionalCheck.objects.good().filter(source=source).order_by("-asked_at").first()
    if good is None:
        return now - conf().undelivered_first
    return max(good.asked_at - OVERLAP, now - WINDOWS[source.scheme])
