"""Who acts on a tenant's own things, how that goes on record, and what a refusal says."""

from dataclasses import dataclass
from typing import Protocol

from django.core.exceptions import ValidationError
from django.core.validators import validate_slug

from reliability.models.source import Tenant
from reliability.models.watch import AuditEntry

NAME_MAX = 60


class Acting(Protocol):
    """Who acts, in which tenant, and why."""

    @property
    def tenant(self) -> Tenant: ...
    @property
    def actor(self) -> str: ...
    @property
    def user_id(self) -> int | None: ...
    @property
    def reason(self) -> str: ...


@dataclass(frozen=True)
class Refused:
    """Nothing was done; ``why`` is a sentence for whoever asked."""

    why: str


def record(act: Acting, name: str, *, about: str, about_id: str, **facts: object) -> None:
    """Append the act's audit entry, in the transaction of what was done."""
    AuditEntry.objects.record(
        act.tenant, actor=act.actor, user_id=act.user_id, act=name, about=about,
        about_id=about_id, reason=act.reason, **facts,
    )  # fmt: skip


def alone(act: Acting) -> None:
    """Let no other such act of the tenant run before this transaction ends; its events go on."""
    Tenant.objects.select_for_update(no_key=True).get(pk=act.tenant.pk)


def name_error(what: str, asked: str) -> str:
    """Say why a new thing cannot be called that, or nothing where it can."""
    try:
        validate_slug(asked)
    except ValidationError:
        fits = False
    else:
        fits = len(asked) <= NAME_MAX
    if fits:
        return ""
    return f"{asked!r} cannot name a {what}: use letters, digits, - and _, at most 60."
