"""Who is in a tenant, and as what: a role given, changed and taken away, never the last admin's."""

from dataclasses import dataclass

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, User
from django.db import transaction

from reliability import sql
from reliability.models import Membership
from reliability.models.acting import Acting, Refused, alone, record
from reliability.models.roles import ROLES, group_name

ADMIN = "admin"
LAST_ADMIN = "{person} is the tenant’s last admin: make somebody else admin first."


@dataclass(frozen=True)
class Joined:
    """The person was in no role here before."""


@dataclass(frozen=True)
class Changed:
    """The person had another role."""

    before: str


@dataclass(frozen=True)
class AsBefore:
    """The person has this role already; nothing was recorded."""


@dataclass(frozen=True)
class Removed:
    """The person is no member any more."""

    role: str


def person_called(text: str) -> User | Refused:
    """Find an account by its name, else by its mail address if that is one account's alone."""
    accounts = get_user_model().objects.filter(is_active=True)
    named = accounts.filter(**{get_user_model().USERNAME_FIELD: text}).first()
    if named is not None:
        return named
    found = list(accounts.filter(email__iexact=text)[:2]) if "@" in text else []
    if len(found) != 1:
        return Refused(f"There is no account {text!r}, or more than one with that address.")
    return found[0]


def give_role(
    person: User, role: str, act: Acting, *, new_account: bool = False
) -> Joined | Changed | AsBefore | Refused:
    """Make ``person`` a member of the act's tenant in ``role``, or change the role they have.

    ``new_account`` goes on record. Refused: an unknown role, and taking the last admin's.
    """
    group = Group.objects.filter(name=group_name(role)).first() if role in ROLES else None
    if group is None:
        return Refused(f"Unknown role {role!r}. Known: {', '.join(ROLES)}.")
    name = person.get_username()
    with transaction.atomic(using=sql.database().alias):
        alone(act)
        member = _member(person, act)
        if member is None:
            Membership.objects.create(tenant=act.tenant, user=person, role=group)
            record(act, "add member", about="member", about_id=name, role=role,
                   new_account=new_account)  # fmt: skip
            return Joined()
        before = role_of(member)
        if before == role:
            return AsBefore()
        if _is_last_admin(member):
            return Refused(LAST_ADMIN.format(person=name))
        Membership.objects.filter(pk=member.pk).update(role=group)
        record(act, "change role", about="member", about_id=name, role=role, before=before)
    return Changed(before)


def remove_member(person: User, act: Acting) -> Removed | Refused:
    """Take ``person`` out of the act's tenant; their account and their acts on record stay."""
    name = person.get_username()
    with transaction.atomic(using=sql.database().alias):
        alone(act)
        member = _member(person, act)
        if member is None:
            return Refused(f"{name} is no member any more.")
        if _is_last_admin(member):
            return Refused(LAST_ADMIN.format(person=name))
        role = role_of(member)
        member.delete()
        record(act, "remove member", about="member", about_id=name, role=role)
    return Removed(role)


def role_of(member: Membership) -> str:
    """Return the role's own word, without the prefix of its group."""
    return member.role.name.removeprefix(group_name(""))


def _member(person: User, act: Acting) -> Membership | None:
    members = Membership.objects.filter(tenant=act.tenant, user=person)
    return members.select_related("role").first()


def _is_last_admin(member: Membership) -> bool:
    """Tell whether nobody else could act as admin; an account that is switched off cannot."""
    if role_of(member) != ADMIN:
        return False
    admins = Membership.objects.filter(
        tenant=member.tenant_id, role=member.role_id, user__is_active=True
    )
    return not admins.exclude(pk=member.pk).exists()
