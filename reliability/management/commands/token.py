"""`manage.py token`: give a caller of the HTTP API a token, list them, revoke one."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction
from django.utils import timezone

from reliability.management.asking import actor, new_slug, one_of, tenant_called
from reliability.management.printing import moment, say_facts, say_json, say_table
from reliability.models import ApiToken, AuditEntry, Tenant

ONCE = "Shown this once: send it as `Authorization: Bearer …`."


class Command(BaseCommand):
    help = "Give a caller of the HTTP API a token (printed once), list tokens, revoke one."

    def add_arguments(self, parser: CommandParser) -> None:
        acts = parser.add_subparsers(dest="act", required=True)
        for name, what in (("add", "make a token"), ("revoke", "end one at once")):
            acts.add_parser(name, help=what).add_argument("name")
        acts.add_parser("list", help="list the live tokens")
        for one in acts.choices.values():
            one.add_argument("--tenant", required=True, metavar="SLUG")
            one.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *_: Any, **options: Any) -> None:
        tenant = tenant_called(options["tenant"])
        match options["act"]:
            case "add":
                found = _add(tenant, new_slug("token", options["name"]))
            case "revoke":
                found = _revoke(tenant, options["name"])
            case _:
                return self._list(tenant, as_json=options["json"])
        return (say_json if options["json"] else say_facts)(self.stdout, found)

    def _list(self, tenant: Tenant, *, as_json: bool) -> None:
        rows = [
            {"token": one.name, "ends_in": one.last_four, "made": moment(one.created_at)}
            for one in _live(tenant)
        ]
        if as_json:
            say_json(self.stdout, rows)
        else:
            say_table(self.stdout, f"Tokens: {len(rows)}", rows)


def _live(tenant: Tenant) -> list[ApiToken]:
    return list(ApiToken.objects.filter(tenant=tenant, revoked_at=None).order_by("name"))


@transaction.atomic
def _add(tenant: Tenant, name: str) -> dict[str, Any]:
    if any(one.name == name for one in _live(tenant)):
        raise CommandError(f"Tenant {tenant.slug!r} has a token {name!r} already.")
    text = ApiToken.issue(tenant, name)
    _record(tenant, "add token", name)
    return {"tenant": tenant.slug, "name": name, "token": text, "token_note": ONCE}


@transaction.atomic
def _revoke(tenant: Tenant, name: str) -> dict[str, Any]:
    one_of("token", name, [one.name for one in _live(tenant)])
    live = ApiToken.objects.filter(tenant=tenant, name=name, revoked_at=None)
    live.update(revoked_at=timezone.now())
    _record(tenant, "revoke token", name)
    return {"tenant": tenant.slug, "name": name, "revoked": True}


def _record(tenant: Tenant, act: str, name: str) -> None:
    AuditEntry.objects.record(tenant, actor=actor(), act=act, about="token", about_id=name)
