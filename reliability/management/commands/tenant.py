"""`manage.py tenant`: add a tenant with its alert rules, or list the tenants."""

from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction
from django.db.models import Count, Q

from reliability.alerts.shipped import ship_rules
from reliability.management.asking import actor, new_slug
from reliability.management.printing import say_facts, say_json, say_table
from reliability.models import AuditEntry, Tenant


class Command(BaseCommand):
    help = "Add a tenant with the shipped alert rules, or list the tenants."

    def add_arguments(self, parser: CommandParser) -> None:
        acts = parser.add_subparsers(dest="act", required=True)
        add = acts.add_parser("add", help="add a tenant")
        add.add_argument("slug")
        add.add_argument("--name", help="as people call it (the slug, in words)")
        add.add_argument(
            "--email", action="append", default=[], help="whom its alerts wake; repeatable"
        )
        for one in (add, acts.add_parser("list", help="list the tenants")):
            one.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *_: Any, **options: Any) -> None:
        if options["act"] == "list":
            rows = _rows()
            if options["json"]:
                say_json(self.stdout, rows)
            else:
                say_table(self.stdout, f"Tenants: {len(rows)}", rows)
            return
        facts = _add(options["slug"], name=options["name"], emails=options["email"])
        (say_json if options["json"] else say_facts)(self.stdout, facts)


@transaction.atomic
def _add(slug: str, *, name: str | None, emails: list[str]) -> dict[str, Any]:
    new_slug("tenant", slug)
    if Tenant.objects.filter(slug=slug).exists():
        raise CommandError(f"There is a tenant {slug!r} already.")
    words = name or slug.replace("-", " ").replace("_", " ").title()
    tenant = Tenant.objects.create(slug=slug, name=words)
    try:
        rules = ship_rules(tenant, emails)
    except ValidationError:
        raise CommandError(f"Not all are mail addresses: {', '.join(emails)}.") from None
    AuditEntry.objects.record(
        tenant, actor=actor(), act="add tenant", about="tenant", about_id=slug, emails=emails
    )
    return {"tenant": slug, "name": words, "alert_rules": len(rules), "emails": emails}


def _rows() -> list[dict[str, Any]]:
    counted = Tenant.objects.annotate(
        sources_=Count("sources", filter=Q(sources__internal=False), distinct=True),
        members_=Count("memberships", distinct=True),
    )
    return [
        {"tenant": t.slug, "name": t.name, "sources": t.sources_, "members": t.members_}
        for t in counted.order_by("slug")
    ]
