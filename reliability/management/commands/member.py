"""`manage.py member`: give a person a role in a tenant, or take them out; list the members."""

import secrets
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandParser
from django.db import transaction

from reliability.management.asking import actor, done, one_of, tenant_called
from reliability.management.printing import say_facts, say_json, say_table
from reliability.models import Membership, Tenant
from reliability.models.roles import ROLES
from reliability.work.dead_letters import Act
from reliability.work.members import give_role, person_called, remove_member, role_of

PASSWORD_BYTES = 15
ONCE = "Shown this once; it can be changed, not read again."


class Command(BaseCommand):
    help = "Give a person a role in a tenant (prints a new account's password once), take it, or list."

    def add_arguments(self, parser: CommandParser) -> None:
        acts = parser.add_subparsers(dest="act", required=True)
        add = acts.add_parser("add", help="give a role; a member's role is changed")
        add.add_argument("username")
        add.add_argument("--role", required=True, help=", ".join(ROLES))
        gone = acts.add_parser("remove", help="take a person out; their account stays")
        gone.add_argument("username")
        shown = acts.add_parser("list", help="list the members of a tenant")
        for one in (add, gone, shown):
            one.add_argument("--tenant", required=True, metavar="SLUG")
            one.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *_: Any, **options: Any) -> None:
        tenant = tenant_called(options["tenant"])
        match options["act"]:
            case "add":
                facts = _add(options["username"], tenant, role=options["role"])
            case "remove":
                facts = _remove(options["username"], tenant)
            case _:
                return self._list(tenant, as_json=options["json"])
        return (say_json if options["json"] else say_facts)(self.stdout, facts)

    def _list(self, tenant: Tenant, *, as_json: bool) -> None:
        rows = _rows(tenant)
        if as_json:
            say_json(self.stdout, rows)
        else:
            say_table(self.stdout, f"Members of {tenant.slug}: {len(rows)}", rows)


@transaction.atomic
def _add(username: str, tenant: Tenant, *, role: str) -> dict[str, Any]:
    one_of("role", role, ROLES)
    user, password = _user(username)
    act = Act(tenant, actor())
    done(give_role(user, role, act, new_account=password is not None))
    facts = {"tenant": tenant.slug, "member": username, "role": role}
    return facts | ({"password": password, "password_note": ONCE} if password else {})


@transaction.atomic
def _remove(username: str, tenant: Tenant) -> dict[str, Any]:
    user = done(person_called(username))
    removed = done(remove_member(user, Act(tenant, actor())))
    return {"tenant": tenant.slug, "member": username, "was": removed.role, "removed": True}


def _user(username: str) -> tuple[User, str | None]:
    """Return the account and, where it was made now, its random password."""
    model = get_user_model()
    known = model.objects.filter(**{model.USERNAME_FIELD: username}).first()
    if known is not None:
        return known, None
    password = secrets.token_urlsafe(PASSWORD_BYTES)
    made = model.objects.create_user(**{model.USERNAME_FIELD: username, "password": password})
    return made, password


def _rows(tenant: Tenant) -> list[dict[str, Any]]:
    members = Membership.objects.filter(tenant=tenant).select_related("user", "role")
    return [
        {"member": one.user.get_username(), "role": role_of(one)}
        for one in members.order_by("pk")
    ]
