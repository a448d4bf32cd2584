"""`manage.py member`: give a person a role in a tenant, making their account where needed."""

import secrets
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, User
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from reliability.management.asking import actor, one_of, tenant_called
from reliability.management.printing import say_facts, say_json, say_table
from reliability.models import AuditEntry, Membership, Tenant
from reliability.models.roles import ROLES, group_name

PASSWORD_BYTES = 15
ONCE = "Shown this once; it can be changed, not read again."


class Command(BaseCommand):
    help = "Give a person a role in a tenant (prints a new account's password once), or list."

    def add_arguments(self, parser: CommandParser) -> None:
        acts = parser.add_subparsers(dest="act", required=True)
        add = acts.add_parser("add", help="give a role; a member's role is changed")
        add.add_argument("username")
        add.add_argument("--role", required=True, help=", ".join(ROLES))
        shown = acts.add_parser("list", help="list the members of a tenant")
        for one in (add, shown):
            one.add_argument("--tenant", required=True, metavar="SLUG")
            one.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *_: Any, **options: Any) -> None:
        tenant = tenant_called(options["tenant"])
        if options["act"] == "add":
            facts = _add(options["username"], tenant, role=options["role"])
            return (say_json if options["json"] else say_facts)(self.stdout, facts)
        rows = _rows(tenant)
        if options["json"]:
            return say_json(self.stdout, rows)
        return say_table(self.stdout, f"Members of {tenant.slug}: {len(rows)}", rows)


@transaction.atomic
def _add(username: str, tenant: Tenant, *, role: str) -> dict[str, Any]:
    group = Group.objects.filter(name=group_name(one_of("role", role, ROLES))).first()
    if group is None:
        raise CommandError("The shipped roles are absent: run manage.py migrate.")
    user, password = _user(username)
    Membership.objects.update_or_create(tenant=tenant, user=user, defaults={"role": group})
    AuditEntry.objects.record(
        tenant, actor=actor(), act="add member", about="member", about_id=username, role=role,
        new_account=password is not None,
    )  # fmt: skip
    facts = {"tenant": tenant.slug, "member": username, "role": role}
    return facts | ({"password": password, "password_note": ONCE} if password else {})


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
        {"member": one.user.get_username(), "role": one.role.name.removeprefix(group_name(""))}
        for one in members.order_by("pk")
    ]
