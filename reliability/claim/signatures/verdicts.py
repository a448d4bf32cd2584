"""The words a scheme answers with: signed or refused, identified or unreadable."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

# Reasons are few and fixed: they label a counter, and never tell a sender what to try next.
MISSING = "signature missing"
MALFORMED = "signature malformed"
WRONG = "signature wrong"
STALE = "signed time outside the tolerance"
CONFLICTING = "header given twice"
NO_SECRET = "no usable secret"  # noqa: S105 - a reason, not a secret
MISCONFIGURED = "scheme options are wrong"
UNKNOWN_SCHEME = "unknown scheme"

Options = Mapping[str, object]


@dataclass(frozen=True)
class Verified:
    """``secret_index`` counts from 0 in the secrets given; ``signed_at`` only where signed."""

    scheme: str
    secret_index: int
    verifier_version: int
    signed_at: datetime | None


@dataclass(frozen=True)
class Refused:
    reason: str


@dataclass(frozen=True)
class Signed:
    """What a scheme found: the secret that fits and the signed time, if the scheme has one."""

    secret_index: int
    signed_at: datetime | None = None


@dataclass(frozen=True)
class Identity:
    """One event of a delivery.

    ``event_type`` is empty when the body names none we could store. ``payload`` holds this
    event's own bytes when it is a part of the body, ``None`` when it is the whole body.
    """

    key: str
    event_type: str
    occurred_at: datetime | None = None
    payload: bytes | None = None


@dataclass(frozen=True)
class Unreadable:
    """Why a body, or one event of it, has no name; ``payload`` is that one event's bytes."""

    reason: str
    fault: Literal["unparseable", "unidentified"] = "unidentified"
    payload: bytes | None = None


Found = Sequence[Identity | Unreadable] | Unreadable


@dataclass(frozen=True, kw_only=True)
class Message:
    """A delivery as a scheme sees it; ``keys`` are the usable secrets with their index."""

    body: bytes
    headers: Mapping[str, str]
    keys: Sequence[tuple[int, bytes]]
    url: str
    now: datetime
    tolerance: timedelta
    options: Options

    def is_timely(self, signed_at: datetime) -> bool:
        """Tell whether a signed time is within the tolerance on both sides of now."""
        return abs(self.now - signed_at) <= self.tolerance


def text_key(secret: str, _options: Options) -> bytes | None:
    """Take a secret's text as the key; ``None`` when it is blank."""
    try:
        return secret.encode() if secret.strip() else None
    except UnicodeEncodeError:
        return None


def no_option_error(_options: Options) -> str | None:
    """Find nothing to say about the options of a scheme that has none."""
    return None


def always(_options: Options) -> bool:
    """Say yes whatever the options."""
    return True


def never(_options: Options) -> bool:
    """Say no whatever the options."""
    return False


@dataclass(frozen=True, kw_only=True)
class Scheme:
    """How one provider signs and names what it sends.

    ``identity_is_signed``: where it is not, an equal body under a new id may be a replay.
    ``body_is_bound``: where it is not (a checksum only), the check is a filter and the event
    must be fetched from the provider before a handler runs. ``needs_certificates``: the door
    fetches them before it asks for a verdict.
    """

    name: str
    version: int
    verify: Callable[[Message], Signed | Refused]
    identities: Callable[[bytes, Mapping[str, str], Options], Found]
    key: Callable[[str, Options], bytes | None] = text_key
    option_error: Callable[[Options], str | None] = no_option_error
    identity_is_signed: Callable[[Options], bool] = always
    body_is_bound: bool = True
    needs_certificates: bool = False
    tolerance: timedelta = timedelta(seconds=300)
