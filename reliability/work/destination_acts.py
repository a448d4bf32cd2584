"""Adding and changing a destination: its address is judged before anything is saved."""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.db import transaction

from reliability import sql
from reliability.errors import AddressRefused, NoAnswer
from reliability.models import Destination
from reliability.models.acting import Refused, alone, name_error, record
from reliability.models.destination import CONCURRENCY_MAX, rules_error
from reliability.outbound import check
from reliability.outbound.signing import new_secret
from reliability.work.dead_letters import Act

NOT_ASKED = {"open_until", "paused_at", "rules", "sealed"}
STATUS_DIGITS = 3


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A destination as asked for; ``rules`` are texts like ``404=retry``."""

    url: str
    concurrency_max: int = 8
    completion_seconds: int = 3_600
    rules: tuple[str, ...] = ()


@dataclass(frozen=True)
class Added:
    """The new destination and its signing secret, which is shown this once."""

    destination: Destination
    secret: str


def add_destination(slug: str, wanted: Wanted, act: Act) -> Added | Refused:
    """Add a destination of the act's tenant.

    All addresses of the URL's host are looked up first, which may take seconds; one that is not
    public refuses it.
    """
    rules, why = _judged(wanted)
    if refused := name_error("destination", slug) or why:
        return Refused(refused)
    made, secret = (
        Destination(tenant=act.tenant, public_id=uuid.uuid4(), slug=slug),
        new_secret(),
    )
    _take(made, wanted, rules)
    made.seal(secret)
    with transaction.atomic(using=sql.database().alias):
        alone(act)
        try:
            made.full_clean(exclude=NOT_ASKED)
        except ValidationError as error:
            return Refused("; ".join(error.messages))
        made.save(force_insert=True)
        _record(act, "add destination", made)
    return Added(made, secret)


def change_destination(
    destination: Destination, wanted: Wanted, act: Act
) -> Destination | Refused:
    """Change where a destination is and how it is asked; its name and secret stay.

    Another URL starts with a closed breaker. Asking for what is so already changes nothing.
    """
    rules, why = _judged(wanted)
    if why:
        return Refused(why)
    with transaction.atomic(using=sql.database().alias):
        now = Destination.objects.select_for_update().get(pk=destination.pk, tenant=act.tenant)
        before = _asked(now)
        moved = now.url != wanted.url
        _take(now, wanted, rules)
        if _asked(now) == before:
            return now
        if moved:
            now.failures, now.open_until = 0, None
        try:
            now.full_clean(exclude=NOT_ASKED)
        except ValidationError as error:
            return Refused("; ".join(error.messages))
        now.save(update_fields=[*before, "failures", "open_until"])
        _record(act, "change destination", now)
    return now


def host_of(url: str) -> str:
    """Return what may be shown of a URL: scheme, host and port; paths may hold secrets."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.hostname or ''}{port}"


def _judged(wanted: Wanted) -> tuple[dict[str, str], str]:
    """Return the rules, and why the address or a rule cannot be; empty where both can."""
    rules, why = _rules(wanted.rules)
    if not 1 <= wanted.concurrency_max <= CONCURRENCY_MAX:
        why = f"Requests at once must be 1 to {CONCURRENCY_MAX}, not {wanted.concurrency_max}."
    if why:
        return {}, why
    try:
        check(wanted.url)
    except (AddressRefused, NoAnswer) as error:
        return {}, f"{host_of(wanted.url) or 'This'} cannot be a destination: {error}."
    return rules, ""


def _rules(texts: Iterable[str]) -> tuple[dict[str, str], str]:
    rules = dict(text.partition("=")[::2] for text in texts)
    if long := [status for status in rules if len(status) > STATUS_DIGITS]:
        return {}, f"Rule {long[0][:20]!r} names no HTTP status."
    wrong = rules_error(rules)
    return rules, f"Rule: {wrong}." if wrong else ""


def _take(destination: Destination, wanted: Wanted, rules: dict[str, str]) -> None:
    destination.url = wanted.url
    destination.concurrency_max = wanted.concurrency_max
    destination.completion_seconds = wanted.completion_seconds
    destination.rules = rules


def _asked(destination: Destination) -> dict[str, object]:
    names = ("url", "concurrency_max", "completion_seconds", "rules")
    return {name: getattr(destination, name) for name in names}


def _record(act: Act, name: str, destination: Destination) -> None:
    """Put on record what was asked for; of the URL its host, the rest may be secret."""
    record(
        act, name, about="destination", about_id=destination.slug,
        host=host_of(destination.url), concurrency_max=destination.concurrency_max,
        completion_seconds=destination.completion_seconds, rules=destination.rules,
    )  # fmt: skip
