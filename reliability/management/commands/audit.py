"""`manage.py audit verify`: follow each tenant's chain of audit entries and name what was changed."""

from itertools import islice
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from reliability.management.asking import tenant_called
from reliability.management.printing import say_json, say_table
from reliability.models import AuditEntry, Tenant

BROKEN_MAX = 100
"""Broken entries named for one tenant; a chain broken once is told, not listed for ever."""


class Command(BaseCommand):
    help = "Check that no audit entry was changed, removed or inserted; exit 1 where one was."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("act", choices=["verify"])
        parser.add_argument("--tenant", metavar="SLUG", help="this tenant's chain only")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *_: Any, **options: Any) -> None:
        slug = options["tenant"]
        tenants = [tenant_called(slug)] if slug else list(Tenant.objects.order_by("slug"))
        broken = [row for tenant in tenants for row in _broken(tenant)]
        entries = AuditEntry.objects.filter(tenant__in=tenants).count()
        if options["json"]:
            say_json(self.stdout, {"entries": entries, "broken": broken, "ok": not broken})
        elif broken:
            say_table(self.stdout, "Broken audit entries", broken)
        else:
            self.stdout.write(
                f"{entries} entries of {len(tenants)} tenants: each chain holds."
            )
        if broken:
            raise CommandError(f"{len(broken)} audit entries do not follow from those before.")


def _broken(tenant: Tenant) -> list[dict[str, Any]]:
    return [
        {
            "tenant": tenant.slug,
            "number": entry.number,
            "id": entry.pk,
            "at": entry.at.isoformat(timespec="seconds"),
            "says": str(entry),
        }
        for entry in islice(AuditEntry.objects.broken(tenant), BROKEN_MAX)
    ]
