"""Redrives as a command line names and prints them."""

import re
import uuid
from typing import Any

from django.core.management.base import CommandError
from django.db.models import Count

from reliability.management.printing import moment
from reliability.models import Redrive, RedriveMember, Tenant
from reliability.work.redrive import counts

NUMBER = re.compile(r"(?:R-)?(\d{1,18})", re.IGNORECASE)


def called(tenant: Tenant, name: str) -> Redrive:
    """Return the redrive with this number (R-7) or id; ends with one line at an unknown one."""
    redrives = Redrive.objects.filter(tenant=tenant)
    number = NUMBER.fullmatch(name)
    try:
        found = redrives.filter(pk=int(number[1])) if number else redrives.filter(
            public_id=uuid.UUID(name)
        )  # fmt: skip
    except ValueError:
        raise CommandError(f"A redrive is called R-7 or by its id, not {name!r}.") from None
    redrive = found.first()
    if redrive is None:
        raise CommandError(f"Tenant {tenant.slug!r} has no redrive {name!r}.")
    return redrive


def row(redrive: Redrive) -> dict[str, Any]:
    """Return a redrive as a list shows it."""
    many = counts(redrive)
    outcomes = {name.value.replace(" ", "_"): many.get(name.value, 0) for name in _SHOWN}
    return {
        "redrive": str(redrive),
        "state": redrive.state,
        **outcomes,
        "by": redrive.actor,
        "frozen_at": moment(redrive.cutoff_at),
    }


_SHOWN = RedriveMember.Outcome


def facts(redrive: Redrive) -> dict[str, Any]:
    """Return what is known of one redrive, for a person or a program."""
    return row(redrive) | {
        "id": redrive.public_id,
        "filter": redrive.asked,
        "reason": redrive.reason,
        "ticket": redrive.ticket,
        "pace": redrive.pace,
        "rate": redrive.rate,
        "why": redrive.why,
        "approved_by": redrive.approved_by,
        "break_glass": redrive.break_glass,
        "started_at": moment(redrive.started_at),
        "ended_at": moment(redrive.ended_at),
    }


def verdicts(redrive: Redrive) -> list[dict[str, Any]]:
    """Return the dry run: letters by verdict."""
    many = dict(redrive.members.order_by().values_list("verdict").annotate(Count("pk")))
    known = RedriveMember.Verdict
    return [{"verdict": v.value, "letters": many[v.value]} for v in known if v.value in many]
