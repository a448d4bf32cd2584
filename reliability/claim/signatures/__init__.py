"""Who sent this, and what is it: one verifier per provider's scheme, over the raw bytes."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType

from reliability.claim.signatures import (
    adyen,
    generic_hmac,
    github,
    gocardless,
    paypal,
    shopify,
    standard_webhooks,
    stripe,
)
from reliability.claim.signatures.identity import identity_key, key_error
from reliability.claim.signatures.verdicts import (
    MISCONFIGURED,
    NO_SECRET,
    UNKNOWN_SCHEME,
    Found,
    Identity,
    Message,
    Options,
    Refused,
    Scheme,
    Unreadable,
    Verified,
)

__all__ = [
    "SCHEMES",
    "Found",
    "Identity",
    "Refused",
    "Scheme",
    "Unreadable",
    "Verified",
    "configuration_error",
    "identities",
    "identity_key",
    "key_error",
    "verify",
]

TOLERANCE_SECONDS_MAX = 7 * 24 * 3600

SCHEMES: Mapping[str, Scheme] = MappingProxyType(
    {
        scheme.name: scheme
        for scheme in (
            stripe.SCHEME,
            standard_webhooks.SCHEME,
            github.SCHEME,
            generic_hmac.SCHEME,
            adyen.SCHEME,
            gocardless.SCHEME,
            paypal.SCHEME,
            shopify.SCHEME,
        )
    }
)


def verify(  # noqa: PLR0913 - everything a request can be judged by, each by its name
    scheme: str,
    *,
    body: bytes,
    headers: Mapping[str, str],
    secrets: Sequence[str],
    url: str,
    now: datetime,
    options: Options,
) -> Verified | Refused:
    """Judge a delivery by the raw bytes; nothing a sender can send raises.

    Every secret is tried with every signature. Blank or undecodable secrets count as none,
    and no secret means refused. ``now`` is aware; ``tolerance_seconds`` in the options holds
    on both sides of it.
    """
    known = SCHEMES.get(scheme)
    if known is None:
        return Refused(UNKNOWN_SCHEME)
    tolerance = _tolerance(known, options)
    if tolerance is None or known.option_error(options):
        return Refused(MISCONFIGURED)
    keys = [
        (i, key) for i, secret in enumerate(secrets) if (key := known.key(secret, options))
    ]
    if not keys:
        return Refused(NO_SECRET)
    message = Message(
        body=body,
        headers=headers,
        keys=keys,
        url=url,
        now=now,
        tolerance=tolerance,
        options=options,
    )
    found = known.verify(message)
    if isinstance(found, Refused):
        return found
    return Verified(scheme, found.secret_index, known.version, found.signed_at)


def identities(
    scheme: str, *, body: bytes, headers: Mapping[str, str], options: Options
) -> Found:
    """Name the events of an authenticated delivery, each key once, in the body's order.

    An event of a batch that has no identity stands among the others as ``Unreadable``.
    """
    known = SCHEMES.get(scheme)
    if known is None:
        return Unreadable(UNKNOWN_SCHEME)
    found = known.identities(body, headers, options)
    if isinstance(found, Unreadable):
        return found
    seen: set[str] = set()
    return [one for one in found if isinstance(one, Unreadable) or _is_new(one.key, seen)]


def _is_new(identity: str, seen: set[str]) -> bool:
    new = identity not in seen
    seen.add(identity)
    return new


def configuration_error(
    scheme: str, *, secrets: Sequence[str], options: Options
) -> str | None:
    """Say why a source may not be saved like this, or ``None``: options, then each secret."""
    known = SCHEMES.get(scheme)
    if known is None:
        return UNKNOWN_SCHEME
    if _tolerance(known, options) is None:
        return f"tolerance_seconds must lie between 1 and {TOLERANCE_SECONDS_MAX}"
    if error := known.option_error(options):
        return error
    if not secrets or any(known.key(secret, options) is None for secret in secrets):
        return "a secret is empty or not in the form this scheme needs"
    return None


def _tolerance(scheme: Scheme, options: Options) -> timedelta | None:
    """Read the tolerance; 0 would switch the check off, so it is a mistake."""
    seconds = options.get("tolerance_seconds")
    if seconds is None:
        return scheme.tolerance
    if isinstance(seconds, int) and 1 <= seconds <= TOLERANCE_SECONDS_MAX:
        return timedelta(seconds=seconds)
    return None
