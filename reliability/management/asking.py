"""What every command asks for: a tenant, a source, one of a few known words; and who asks."""

import getpass
import os
from collections.abc import Iterable
from typing import Any, TypeVar

from django.core.management.base import CommandError

from reliability.claim.sources import read_options
from reliability.models import Source, Tenant
from reliability.models.acting import Refused, name_error

Done = TypeVar("Done")


def actor() -> str:
    """Return who runs this command, as the audit trail names them."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # a container without an account of that number
        name = f"user {os.getuid()}"
    return f"{name} (command)"


def done(outcome: "Done | Refused") -> "Done":
    """Return what a verb did; ends with its one line where it refused."""
    if isinstance(outcome, Refused):
        raise CommandError(outcome.why)
    return outcome


def one_of(what: str, asked: str, known: Iterable[str]) -> str:
    """Return ``asked`` if it is known; else end with one line that names the known ones."""
    names = list(known)
    if asked not in names:
        raise CommandError(
            f"Unknown {what} {asked!r}. Known: {', '.join(names) or 'none yet'}."
        )
    return asked


def new_slug(what: str, asked: str) -> str:
    """Return ``asked`` if it can name a new thing: letters, digits, hyphens, at most 60."""
    if why := name_error(what, asked):
        raise CommandError(why)
    return asked


def tenant_called(slug: str) -> Tenant:
    """Return the tenant; else end with one line that names the known ones."""
    known = Tenant.objects.order_by("slug")
    one_of("tenant", slug, (tenant.slug for tenant in known[:50]))
    return known.get(slug=slug)


def source_called(slug: str, tenant: Tenant) -> Source:
    """Return the tenant's source; else end with one line that names the known ones."""
    known = Source.objects.filter(tenant=tenant, internal=False).order_by("slug")
    one_of("source", slug, (source.slug for source in known[:50]))
    return known.get(slug=slug)


def pairs(option: str, texts: Iterable[str]) -> dict[str, Any]:
    """Read ``name=value`` arguments; a value that is JSON is read as such: 600, true, {…}."""
    try:
        return read_options(texts)
    except ValueError as error:
        raise CommandError(f"--{option} takes name=value, not {str(error)!r}.") from None
