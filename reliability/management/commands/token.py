"""`manage.py token`: give a caller of the HTTP API a token, list them, revoke one."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from reliability.management.asking import actor, done, new_slug, one_of, tenant_called
from reliability.management.printing import moment, say_facts, say_json, say_table
from reliability.models import ApiToken, Tenant
from reliability.work.dead_letters import Act
from reliability.work.tokens import make_token, revoke_token

ONCE = "Shown this once: send it as `Authorization: Bearer …`."


class Command(BaseCommand):
    help = "Give a caller of the HTTP API a token (printed once), list tokens, revoke one."

    def add_arguments(self, parser: CommandParser) -> None:
        acts = parser.add_subparsers(dest="act", required=True)
        for name, what in (("add", "make a token"), ("revoke", "end one at once")):
            acts.add_parser(name, help=what).add_argument("name")
        acts.add_parser("list", help="list the tokens that are not revoked")
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
            {
                "token": one.name,
                "ends_in": one.last_four,
                "made": moment(one.created_at),
                "last_used": moment(one.last_used_at) if one.last_used_at else "",
                "expires": moment(one.expires_at) if one.expires_at else "",
            }
            for one in ApiToken.objects.unrevoked(tenant).order_by("name")
        ]
        if as_json:
            say_json(self.stdout, rows)
        else:
            say_table(self.stdout, f"Tokens: {len(rows)}", rows)


def _add(tenant: Tenant, name: str) -> dict[str, Any]:
    made = done(make_token(name, Act(tenant, actor())))
    return {"tenant": tenant.slug, "name": name, "token": made.text, "token_note": ONCE}


def _revoke(tenant: Tenant, name: str) -> dict[str, Any]:
    one_of("token", name, [one.name for one in ApiToken.objects.unrevoked(tenant)])
    done(revoke_token(name, Act(tenant, actor())))
    return {"tenant": tenant.slug, "name": name, "revoked": True}
