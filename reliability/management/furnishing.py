"""What an admin sets up in the demo: more sources, destinations, tokens, a pause, a silence, views."""

from collections.abc import Mapping
from datetime import timedelta
from http import HTTPStatus
from secrets import token_hex
from typing import Any
from urllib.parse import urlsplit

from django.utils import timezone

from reliability.alerts.silences import Window, silence
from reliability.management.asking import source_called, tenant_called
from reliability.management.company import by, kept, wait
from reliability.management.stage import Stage, ask
from reliability.management.visitor import Visitor
from reliability.models import (
    ApiToken,
    DestinationAnswer,
    Job,
    KindPause,
    Membership,
    SavedView,
    Silence,
    Source,
)
from reliability.proof.afternoon import CRM, CUSTOMERS, LEADS, WAREHOUSE, Afternoon
from reliability.proof.cast import BILLING, SHOP, STRIPE
from reliability.proof.post import Address, Sender
from reliability.work.destination_acts import Wanted, add_destination
from reliability.work.holds import pause
from reliability.work.tokens import make_token, revoke_token

GITHUB = "acme-github"
PAUSED_KIND = "stripe.customer.updated"
ANSWER_SECONDS = 60
Facts = dict[str, Any]
VIEWS = (
    # who, list, name, filter, shared
    ("olga", "dead_letters", "Frozen accounts", "error=CustomerFrozen", True),
    ("olga", "causes", "Came back", "back=1", True),
    ("vera", "discrepancies", "What never arrived", "cause=never_received", False),
)


def furnish(played: Stage, passwords: Mapping[str, str]) -> dict[str, Address]:
    """Add sources and destinations, tokens, a paused kind, a silence and saved views.

    Returns where the sources take events whose events are only sent on.
    """
    acme, borealis = tenant_called(STRIPE.tenant), tenant_called(SHOP.tenant)
    ask("source", "add", GITHUB, f"--tenant={acme.slug}", "--preset=github")
    addresses = {name: _sent_on(played, name) for name in (CRM, WAREHOUSE)}
    admin = by("admin", acme)
    for name in ("ledger-export", "old-shop"):
        kept(make_token(name, admin, expires_at=timezone.now() + timedelta(days=90)))
    kept(revoke_token("old-shop", admin))
    kept(make_token("shop", by("admin", borealis)))
    pause(PAUSED_KIND, by("olga", acme, "the CRM moves to another host this week"))
    now = timezone.now()
    window = Window(
        from_at=now,
        until_at=now + timedelta(hours=4),
        source=source_called(BILLING.name, acme),
    )
    kept(silence(window, by("olga", acme, "billing is moved to another host")))
    _visit(played.stack.url, passwords)
    return addresses


def send_on(played: Stage, addresses: Mapping[str, Address], told: Afternoon) -> None:
    """Send what goes to the destinations, of which the warehouse is down."""
    sender = Sender(played.stack.port, addresses)
    sender.send_all(told.sent_on(), lambda _answer: None)


def furniture() -> Facts:
    """Tell what is there now, once the CRM has its leads and the warehouse has failed."""
    wait(lambda: _answers(CRM, HTTPStatus.OK) == LEADS, seconds=ANSWER_SECONDS)
    wait(_warehouse_failed, seconds=ANSWER_SECONDS)
    return {
        "presets": sorted(
            set(Source.objects.filter(internal=False).values_list("preset", flat=True))
        ),
        "roles": sorted(set(Membership.objects.values_list("role__name", flat=True))),
        "leads_sent_on": _answers(CRM, HTTPStatus.OK),
        "warehouse_failed": _warehouse_failed(),
        "tokens": ApiToken.objects.filter(revoked_at=None).count(),
        "revoked_tokens": ApiToken.objects.exclude(revoked_at=None).count(),
        "paused_kinds": list(KindPause.objects.values_list("kind", flat=True)),
        "held": Job.objects.filter(kind=PAUSED_KIND, held=Job.Hold.PAUSED).count(),
        "silences": Silence.objects.active(timezone.now()).count(),
        "saved_views": SavedView.objects.count(),
    }


FURNITURE: Facts = {
    "presets": ["generic-hmac", "github", "standard-webhooks", "stripe"],
    "roles": [f"reliability {role}" for role in ("admin", "approver", "operator", "viewer")],
    "leads_sent_on": LEADS,
    "warehouse_failed": True,
    "tokens": 2,
    "revoked_tokens": 1,
    "paused_kinds": [PAUSED_KIND],
    "held": CUSTOMERS,
    "silences": 1,
    "saved_views": len(VIEWS),
}
"""What `furniture` must tell."""


def _sent_on(played: Stage, name: str) -> Address:
    """Add a source and the destination that its events are sent on to."""
    tenant = tenant_called(SHOP.tenant)
    destination = name.partition("-")[2]
    made = ask("source", "add", name, f"--tenant={tenant.slug}", "--preset=generic-hmac")
    wanted = Wanted(url=f"{played.sink.url}/v1/{destination}")
    kept(add_destination(destination, wanted, by("admin", tenant)))
    ask("destination", "use", destination, f"--tenant={tenant.slug}", f"--source={name}")
    return Address(path=urlsplit(made["url"]).path, secret=made["secret"])


def _visit(url: str, passwords: Mapping[str, str]) -> None:
    """Save views and try the new source's door, as people do: in the console."""
    visitors = {
        name: Visitor(url, user=name, password=passwords[name])
        for name in ("admin", "olga", "vera")
    }
    for name, page, called, query, shared in VIEWS:
        told = {"page": page, "name": called, "query": query}
        visitors[name].fill(
            "/saved-views/save/", **told, **({"shared": "on"} if shared else {})
        )
    github = source_called(GITHUB, tenant_called(STRIPE.tenant))
    visitors["admin"].fill(
        f"/sources/{github.public_id}/test/", event_id=f"test_{token_hex(12)}"
    )


def _answers(source: str, status: int) -> int:
    return DestinationAnswer.objects.filter(job__source__slug=source, status=status).count()


def _warehouse_failed() -> bool:
    return _answers(WAREHOUSE, HTTPStatus.SERVICE_UNAVAILABLE) > 0
