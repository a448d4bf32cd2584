"""Dead letters as a command line chooses them: by their numbers, or by the list's filters."""

import re
import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db.models import Q, QuerySet

from reliability.conf import conf
from reliability.management.asking import source_called
from reliability.management.printing import amount, moment
from reliability.models import DeadLetter, Tenant
from reliability.work.dead_letters import Moved, Seen

ALL = "all"
AGES = {"1h": timedelta(hours=1), "24h": timedelta(hours=24), "7d": timedelta(days=7)}
EQUAL = {"kind": "kind", "outcome": "outcome", "error": "error_type", "cause": "fingerprint"}
NUMBER = re.compile(r"(?:DL-)?(\d{1,18})", re.IGNORECASE)


def describe_filters(parser: CommandParser) -> None:
    """Add the filters of the console's list, under the same names."""
    parser.add_argument("--source", metavar="SLUG")
    parser.add_argument("--kind")
    parser.add_argument("--outcome", choices=DeadLetter.Outcome.values)
    parser.add_argument("--error", metavar="CLASS", help="class of the last error")
    parser.add_argument(
        "--status", choices=[*DeadLetter.Status.values, ALL], help="open, unless told"
    )
    parser.add_argument("--age", choices=AGES, help="older than this")
    parser.add_argument("--rounds", type=int, metavar="N", help="in its N-th round or later")
    parser.add_argument("--key", metavar="TEXT", help="its key contains this")
    parser.add_argument("--cause", help="fingerprint of the failure")


def matching(
    tenant: Tenant, options: dict[str, Any], *, now: datetime
) -> "QuerySet[DeadLetter]":
    """Return the tenant's letters that pass every filter given, newest first."""
    wanted = Q()
    if options["status"] != ALL:
        wanted &= Q(status=options["status"] or DeadLetter.Status.OPEN)
    if options["source"]:
        wanted &= Q(source=source_called(options["source"], tenant))
    if options["age"]:
        wanted &= Q(buried_at__lte=now - AGES[options["age"]])
    if options["rounds"]:
        wanted &= Q(round__gte=options["rounds"])
    if options["key"]:
        wanted &= Q(job__key__key__contains=options["key"])
    for name, field in EQUAL.items():
        if options[name]:
            wanted &= Q(**{field: options[name]})
    return _with_job(DeadLetter.objects.filter(wanted, tenant=tenant))


def narrows(options: dict[str, Any]) -> bool:
    """Tell whether any filter was given."""
    names = ("source", "age", "rounds", "key", "status", *EQUAL)
    return any(options[name] for name in names)


def called(tenant: Tenant, names: Sequence[str]) -> list[DeadLetter]:
    """Return the letters with these numbers (DL-7) or ids; ends with one line at an unknown one."""
    if len(names) > conf().selection_max:
        raise CommandError(f"At most {conf().selection_max} letters at a time.")
    letters = _with_job(DeadLetter.objects.filter(tenant=tenant))
    found = []
    for name in names:
        letter = letters.filter(_named(name)).first()
        if letter is None:
            raise CommandError(f"Tenant {tenant.slug!r} has no dead letter {name!r}.")
        found.append(letter)
    return found


def _named(name: str) -> Q:
    if number := NUMBER.fullmatch(name):
        return Q(pk=int(number[1]))
    try:
        return Q(public_id=uuid.UUID(name))
    except ValueError:
        raise CommandError(
            f"A dead letter is called DL-7 or by its id, not {name!r}."
        ) from None


def _with_job(letters: "QuerySet[DeadLetter]") -> "QuerySet[DeadLetter]":
    return letters.select_related("source", "job", "job__key").order_by("-buried_at", "-pk")


def seen(letters: Sequence[DeadLetter]) -> list[Seen]:
    """Return the letters with the versions they were read at, as the verbs want them."""
    return [Seen(letter.pk, letter.job.version) for letter in letters]


def row(letter: DeadLetter) -> dict[str, Any]:
    """Return a letter as the list shows it."""
    return {
        "letter": f"DL-{letter.pk}",
        "buried_at": moment(letter.buried_at),
        "source": letter.source.slug,
        "kind": letter.kind,
        "key": letter.job.key.key,
        "outcome": letter.outcome,
        "status": letter.status,
        "round": letter.round,
        "amount": amount(letter.amount_minor, letter.currency, letter.exponent),
        "why": (letter.error_type and f"{letter.error_type}: {letter.message}")
        or letter.reason,
    }


def told(moved: Moved) -> dict[str, Any]:
    """Return what an act did, each letter by its number."""
    return {
        "moved": [f"DL-{pk}" for pk in moved.letter_ids],
        "refused": [
            {"letter": f"DL-{one.letter_id}", "why": one.why} for one in moved.refused
        ],
        "starts_at": moment(moved.starts_at),
    }
