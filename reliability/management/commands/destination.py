"""`manage.py destination`: add a URL that takes a source's events, list them, say who uses one."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.db import transaction

from reliability.management.asking import actor, done, one_of, source_called, tenant_called
from reliability.management.printing import say_facts, say_json, say_table
from reliability.models import AuditEntry, Destination, Tenant
from reliability.work.dead_letters import Act
from reliability.work.destination_acts import Wanted, add_destination

ONCE = "Shown this once; the destination verifies our signature with it (Standard Webhooks)."


class Command(BaseCommand):
    help = "Add a destination, list destinations, send a source's events to one."

    def add_arguments(self, parser: CommandParser) -> None:
        acts = parser.add_subparsers(dest="act", required=True)
        add = acts.add_parser("add", help="add a destination; prints its signing secret once")
        add.add_argument("slug")
        add.add_argument("--url", required=True, help="https, of a public address")
        add.add_argument("--concurrency", type=int, default=8, help="requests at once")
        add.add_argument("--completion", type=int, default=3_600, metavar="SECONDS",
                         help="how long a 202 may take to be reported done")  # fmt: skip
        add.add_argument(
            "--rule", action="append", default=[], metavar="STATUS=done|retry|bury"
        )
        use = acts.add_parser("use", help="send a source's events to it")
        use.add_argument("slug", help="a destination, or none")
        use.add_argument("--source", required=True, metavar="SLUG")
        shown = acts.add_parser("list", help="list the destinations")
        for one in (add, use, shown):
            one.add_argument("--tenant", required=True, metavar="SLUG")
            one.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *_: Any, **options: Any) -> None:
        tenant = tenant_called(options["tenant"])
        match options["act"]:
            case "add":
                found = _add(tenant, options)
            case "use":
                found = _use(tenant, options["slug"], options["source"])
            case _:
                return self._list(tenant, as_json=options["json"])
        return (say_json if options["json"] else say_facts)(self.stdout, found)

    def _list(self, tenant: Tenant, *, as_json: bool) -> None:
        rows = [
            _row(one) for one in Destination.objects.filter(tenant=tenant).order_by("slug")
        ]
        if as_json:
            say_json(self.stdout, rows)
        else:
            say_table(self.stdout, f"Destinations: {len(rows)}", rows)


def _add(tenant: Tenant, options: dict[str, Any]) -> dict[str, Any]:
    wanted = Wanted(
        url=options["url"], concurrency_max=options["concurrency"],
        completion_seconds=options["completion"], rules=tuple(options["rule"]),
    )  # fmt: skip
    added = done(add_destination(options["slug"], wanted, Act(tenant, actor())))
    return _row(added.destination) | {"secret": added.secret, "secret_note": ONCE}


@transaction.atomic
def _use(tenant: Tenant, slug: str, source_slug: str) -> dict[str, Any]:
    source = source_called(source_slug, tenant)
    known = {one.slug: one for one in Destination.objects.filter(tenant=tenant)}
    one_of("destination", slug, [*sorted(known), "none"])
    source.destination = known.get(slug)
    source.save(update_fields=["destination"])
    _record(tenant, "use destination", slug, source=source.slug)
    return {"source": source.slug, "destination": slug}


def _record(tenant: Tenant, act: str, slug: str, **facts: Any) -> None:
    AuditEntry.objects.record(
        tenant, actor=actor(), act=act, about="destination", about_id=slug, **facts
    )


def _row(one: Destination) -> dict[str, Any]:
    return {
        "destination": one.slug,
        "url": one.url,
        "concurrency": one.concurrency_max,
        "sources": ", ".join(sorted(source.slug for source in one.sources.all())),
        "breaker": "open" if one.open_until else "closed",
    }
