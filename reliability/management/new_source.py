"""A new source as its preset starts it, its address, and the secret its provider signs with."""

import base64
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.conf import settings
from django.core.management.base import CommandError

from reliability.claim.presets import PRESETS, Preset
from reliability.claim.signatures import SCHEMES, configuration_error
from reliability.embedded.state import read_state
from reliability.management.asking import one_of
from reliability.models import Source, Tenant
from reliability.reconcile.formats import FORMATS

SECRET_BYTES = 32


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the command line says of a source; ``None`` leaves it to the preset."""

    slug: str
    preset: str
    mode: str = Source.Mode.LIVE
    account: str = ""
    zone: str | None = None
    statement_format: str | None = None
    statement_options: Mapping[str, Any] = field(default_factory=dict)
    statement_kinds: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


def unsaved(asked: Asked, tenant: Tenant) -> Source:
    """Build the source, not saved; ends with one line that names what is known instead."""
    preset = PRESETS[one_of("preset", asked.preset, PRESETS)]
    return Source(
        tenant=tenant,
        slug=asked.slug,
        preset=preset.name,
        scheme=preset.scheme,
        mode=one_of("mode", asked.mode, Source.Mode.values),
        account=asked.account,
        options=_defaults(preset) | dict(asked.options),
        zone=_zone(asked.zone or preset.zone),
        statement_format=_statement_format(asked.statement_format, preset),
        statement_options=dict(asked.statement_options),
        statement_kinds=list(asked.statement_kinds),
    )


def _defaults(preset: Preset) -> dict[str, Any]:
    """Return the preset's options; its tolerance too, where the scheme's own is another."""
    options = dict(preset.options)
    if preset.tolerance and preset.tolerance != SCHEMES[preset.scheme].tolerance:
        options["tolerance_seconds"] = int(preset.tolerance.total_seconds())
    return options


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise CommandError(
            f"{name!r} is no time zone; write one like Europe/London."
        ) from None
    return name


def _statement_format(asked: str | None, preset: Preset) -> str:
    if asked:
        return one_of("statement format", asked, sorted(FORMATS))
    shipped = preset.statement_format or ""
    return shipped if shipped in FORMATS else ""


def secret_for(source: Source, variable: str | None) -> tuple[str, bool]:
    """Return the source's signing secret, and whether it was made here.

    ``variable`` names the environment variable that holds the provider's own secret. Ends with
    one line where the scheme cannot use the secret, or only its provider can make one.
    """
    if variable:
        secret = os.environ.get(variable, "")
        if not secret.strip():
            raise CommandError(f"The environment variable {variable} is not set or empty.")
    elif source.scheme == "paypal":
        raise CommandError(
            "PayPal gives no secret of your choice: put the webhook's id into an environment "
            "variable and name it with --secret-from-env."
        )
    else:
        secret = _made(source)
    if error := configuration_error(source.scheme, secrets=[secret], options=source.options):
        raise CommandError(f"Source {source.slug!r} cannot work like this: {error}.")
    return secret, not variable


def _made(source: Source) -> str:
    """Make a random secret in the form its scheme wants."""
    raw = secrets.token_bytes(SECRET_BYTES)
    base64_text = base64.b64encode(raw).decode()
    match source.scheme, source.options.get("secret_encoding"):
        case (("stripe" | "standard-webhooks"), _):
            return f"whsec_{base64_text}"
        case "generic-hmac", "base64":
            return base64_text
        case _:
            return raw.hex()


def address(source: Source) -> str:
    """Return the URL the provider delivers to; from the root where no base URL is known."""
    base = settings.RELIABILITY_BASE_URL
    if not base and getattr(settings, "EMBEDDED", False):
        base = read_state(Path(settings.DATA_DIR)).url or ""
    return f"{base}/hooks/{source.endpoint_token}/"
