"""A new source as its preset starts it, and the secret its provider signs with."""

import base64
import json
import secrets
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.db import transaction
from django.utils import timezone

from reliability import sql
from reliability.claim.presets import PRESETS, Preset
from reliability.claim.signatures import SCHEMES, configuration_error
from reliability.models import Source, SourceSecret
from reliability.models.acting import Acting, Refused, alone, name_error, record

SECRET_BYTES = 32
OVERLAP = timedelta(hours=24)
"""How long the secret before the current one still verifies."""
PAYPAL_MAKES_IT = (
    "PayPal gives no secret of your choice: give the webhook’s id, as PayPal shows it."
)


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is asked of a new source; ``None`` leaves it to the preset."""

    slug: str
    preset: str
    mode: str = Source.Mode.LIVE
    account: str = ""
    zone: str | None = None
    statement_format: str | None = None
    statement_options: Mapping[str, Any] = field(default_factory=dict)
    statement_kinds: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Added:
    """The new source; ``secret`` only where it was made here: it is not shown again."""

    source: Source
    secret: str


@dataclass(frozen=True)
class Rotated:
    """The source with a new current secret; the one before it works until ``until``."""

    source: Source
    secret: str
    until: datetime


def add_source(
    wanted: Wanted, act: Acting, *, formats: Collection[str], secret: str | None = None
) -> Added | Refused:
    """Add a source to the act's tenant, with its first secret.

    ``secret`` is the provider's own, and refused if empty; ``None`` makes one. ``formats`` are
    the statement formats there are readers for.
    """
    source = unsaved(wanted, act, formats=formats)
    if isinstance(source, Refused):
        return source
    text = _usable(source, secret)
    if isinstance(text, Refused):
        return text
    with transaction.atomic(using=sql.database().alias):
        alone(act)
        if Source.objects.filter(tenant=act.tenant, slug=source.slug).exists():
            return Refused(f"Tenant {act.tenant.slug!r} has a source {source.slug!r} already.")
        source.save(force_insert=True)
        SourceSecret.objects.rotate(source, text, overlap_until=timezone.now())
        record(act, "add source", about="source", about_id=source.slug, preset=source.preset,
               mode=source.mode)  # fmt: skip
    return Added(source, "" if secret else text)


def rotate_secret(
    source: Source, act: Acting, *, secret: str | None = None, seen: int | None = None
) -> Rotated | Refused:
    """Make another secret current; the one before it works for another 24 h.

    ``seen`` is the number of the current secret as the person saw it: had somebody rotated since,
    it is refused, so that a second click does not end the overlap of the first.
    """
    text = _usable(source, secret)
    if isinstance(text, Refused):
        return text
    until = timezone.now() + OVERLAP
    with transaction.atomic(using=sql.database().alias):
        alone(act)
        current = SourceSecret.objects.filter(source=source, expires_at=None).first()
        if seen is not None and (current is None or current.pk != seen):
            return Refused(f"The secret of {source.slug} was rotated since.")
        SourceSecret.objects.rotate(source, text, overlap_until=until)
        record(act, "rotate secret", about="source", about_id=source.slug,
               overlap_until=until.isoformat(timespec="seconds"))  # fmt: skip
    return Rotated(source, "" if secret else text, until)


def read_options(texts: Iterable[str]) -> dict[str, Any]:
    """Read ``name=value`` texts; a value that is JSON is read as such: 600, true, {…}.

    Raises ValueError with the text that is none.
    """
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise ValueError(text)
        found[name.strip()] = _value(value.strip())
    return found


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def unsaved(wanted: Wanted, act: Acting, *, formats: Collection[str]) -> Source | Refused:
    """Build the source, not saved; a refusal names what is known instead."""
    if why := name_error("source", wanted.slug) or _unknown(wanted, formats):
        return Refused(why)
    preset = PRESETS[wanted.preset]
    shipped = preset.statement_format or ""
    return Source(
        tenant=act.tenant,
        slug=wanted.slug,
        preset=preset.name,
        scheme=preset.scheme,
        mode=wanted.mode,
        account=wanted.account,
        options=_defaults(preset) | dict(wanted.options),
        zone=wanted.zone or preset.zone,
        statement_format=wanted.statement_format or (shipped if shipped in formats else ""),
        statement_options=dict(wanted.statement_options),
        statement_kinds=list(wanted.statement_kinds),
    )


def _unknown(wanted: Wanted, formats: Collection[str]) -> str:
    """Say which word of a wish is none that is known."""
    asked: dict[str, tuple[str | None, Collection[str]]] = {
        "preset": (wanted.preset, PRESETS),
        "mode": (wanted.mode, Source.Mode.values),
        "statement format": (wanted.statement_format or None, sorted(formats)),
    }
    for what, (word, known) in asked.items():
        if word is not None and word not in known:
            return f"Unknown {what} {word!r}. Known: {', '.join(known)}."
    return _zone_error(wanted.zone) if wanted.zone else ""


def _zone_error(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return f"{name!r} is no time zone; write one like Europe/London."
    return ""


def _defaults(preset: Preset) -> dict[str, Any]:
    """Return the preset's options; its tolerance too, where the scheme's own is another."""
    options = dict(preset.options)
    if preset.tolerance and preset.tolerance != SCHEMES[preset.scheme].tolerance:
        options["tolerance_seconds"] = int(preset.tolerance.total_seconds())
    return options


def _usable(source: Source, given: str | None) -> str | Refused:
    """Return the secret to keep: the given one, or one made here in the form its scheme wants."""
    if given is None and source.scheme == "paypal":
        return Refused(PAYPAL_MAKES_IT)
    secret = _made(source) if given is None else given.strip()
    if not secret:
        return Refused("The secret is empty: the door would have nothing to check with.")
    if error := configuration_error(source.scheme, secrets=[secret], options=source.options):
        return Refused(f"Source {source.slug!r} cannot work like this: {error}.")
    return secret


def _made(source: Source) -> str:
    raw = secrets.token_bytes(SECRET_BYTES)
    base64_text = base64.b64encode(raw).decode()
    match source.scheme, source.options.get("secret_encoding"):
        case (("stripe" | "standard-webhooks"), _):
            return f"whsec_{base64_text}"
        case "generic-hmac", "base64":
            return base64_text
        case _:
            return raw.hex()
