"""What a command says of a source: its address, and a secret from the environment."""

import os
from pathlib import Path

from django.conf import settings
from django.core.management.base import CommandError

from reliability.claim.sources import PAYPAL_MAKES_IT
from reliability.embedded.state import read_state
from reliability.models import Source


def secret_from(variable: str | None, preset: str) -> str | None:
    """Return the provider's own secret from an environment variable; ``None`` to have one made."""
    if variable is None:
        if preset == "paypal":
            raise CommandError(f"{PAYPAL_MAKES_IT} Name its variable with --secret-from-env.")
        return None
    secret = os.environ.get(variable, "")
    if not secret.strip():
        raise CommandError(f"The environment variable {variable} is not set or empty.")
    return secret


def address(source: Source) -> str:
    """Return the URL the provider delivers to; from the root where no base URL is known."""
    base = settings.RELIABILITY_BASE_URL
    if not base and getattr(settings, "EMBEDDED", False):
        base = read_state(Path(settings.DATA_DIR)).url or ""
    return f"{base}/hooks/{source.endpoint_token}/"
