"""Tokens of a tenant's callers of the HTTP API: made once, shown once, ended at once."""

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from reliability import sql
from reliability.models import ApiToken
from reliability.models.acting import Acting, Refused, alone, name_error, record


@dataclass(frozen=True)
class Made:
    """A new token; ``text`` is not kept and cannot be read again."""

    name: str
    text: str


@dataclass(frozen=True)
class Revoked:
    """No request with this token is let in from now on."""

    name: str


def make_token(
    name: str, act: Acting, *, expires_at: datetime | None = None
) -> Made | Refused:
    """Make a token for the act's tenant; ``expires_at`` lies ahead, ``None`` for no end."""
    if why := name_error("token", name) or _past(expires_at):
        return Refused(why)
    with transaction.atomic(using=sql.database().alias):
        alone(act)
        if ApiToken.objects.unrevoked(act.tenant).filter(name=name).exists():
            return Refused(f"Tenant {act.tenant.slug!r} has a token {name!r} already.")
        text = ApiToken.issue(act.tenant, name, expires_at=expires_at)
        facts = {"expires_at": expires_at.isoformat()} if expires_at else {}
        record(act, "add token", about="token", about_id=name, **facts)
    return Made(name, text)


def _past(expires_at: datetime | None) -> str:
    if expires_at and expires_at <= timezone.now():
        return "A token’s last day lies ahead."
    return ""


def revoke_token(name: str, act: Acting) -> Revoked | Refused:
    """End a token of the act's tenant. One that was ended before is refused and not recorded."""
    with transaction.atomic(using=sql.database().alias):
        named = ApiToken.objects.unrevoked(act.tenant).filter(name=name)
        if not named.update(revoked_at=timezone.now()):
            return Refused(f"The token {name!r} is revoked already.")
        record(act, "revoke token", about="token", about_id=name)
    return Revoked(name)
