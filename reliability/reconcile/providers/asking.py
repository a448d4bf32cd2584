"""What every client of a provider's API needs: its package, a credential, an address, limits."""

import importlib
from datetime import timedelta
from types import ModuleType
from typing import NoReturn

from reliability.conf import conf
from reliability.models import ApiCredential, Source
from reliability.outbound import check_own
from reliability.reconcile.providers.provided import CannotFetch, RateLimited

PAGES_MAX = 500
"""Pages one call reads; more are refused rather than left out."""
OVERLAP = timedelta(minutes=10)
"""Asked for beyond both ends of a span: what a provider lists late is not lost at its edge."""


def package(name: str, *, extra: str) -> ModuleType:
    """Import a provider's own package. Raises ``CannotFetch`` where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise CannotFetch(f"install reliability[{extra}] to ask {extra} for events") from None


def credential_of(source: Source) -> str:
    """Open the source's credential. Raises ``CannotFetch`` where it has none."""
    credential = ApiCredential.objects.filter(source=source).first()
    if credential is None:
        raise CannotFetch(f"{source.slug} has no API credential: see `manage.py intake`")
    return credential.open()


def own_address(source: Source) -> str | None:
    """Return the address the option ``api_url`` names instead of the provider's, or ``None``.

    The credential goes there, so it must lie in one of ``conf().outbound_private_networks``.
    Raises ``AddressRefused`` or ``NoAnswer``.
    """
    base: str | None = source.options.get("api_url")
    if base:
        check_own(base)
    return base or None


def seconds_max() -> float:
    """Return how long one request may take, in seconds."""
    return conf().outbound_time.total_seconds()


def too_many_pages(provider: str) -> NoReturn:
    """Refuse a list that goes on and on. Raises ``CannotFetch``."""
    raise CannotFetch(f"{provider} lists more than {PAGES_MAX} pages: ask for fewer days")


def rate_limited(provider: str, until: str = "in a few minutes") -> RateLimited:
    """Return the error for a provider that takes no more requests for now, with the remedy."""
    return RateLimited(
        f"{provider} takes no more requests for now: fetch again {until}; "
        "what was taken in already stays one"
    )


def no_answer(provider: str, error: Exception) -> CannotFetch:
    """Return the error for a request without an answer; never the text, which may tell a URL."""
    return CannotFetch(
        f"{provider} did not answer ({type(error).__name__}): fetch again later"
    )
