"""GitHub: ``X-Hub-Signature-256: sha256=…`` over the body; the delivery's id is not signed."""

from collections.abc import Mapping
from urllib.parse import parse_qsl

from reliability.claim.signatures.headers import header
from reliability.claim.signatures.identity import document, event_type, identity_key
from reliability.claim.signatures.mac import digest, match, unhex
from reliability.claim.signatures.verdicts import (
    MALFORMED,
    WRONG,
    Identity,
    Message,
    Options,
    Refused,
    Scheme,
    Signed,
    Unreadable,
    never,
)

_PREFIX = "sha256="
_FORM = "application/x-www-form-urlencoded"
_FORM_FIELDS_MAX = 10


def verify(message: Message) -> Signed | Refused:
    """Accept exactly one lower-case SHA-256; SHA-1 and a value without its prefix are refused.

    Source: docs.github.com, "Validating webhook deliveries".
    """
    value = header(message.headers, "X-Hub-Signature-256")
    if isinstance(value, Refused):
        return value
    signature = unhex(value.removeprefix(_PREFIX)) if value.startswith(_PREFIX) else None
    if signature is None:
        return Refused(MALFORMED)
    expected = [(index, digest(key, message.body)) for index, key in message.keys]
    index = match([signature], expected)
    return Refused(WRONG) if index is None else Signed(index)


def identities(
    body: bytes, headers: Mapping[str, str], _options: Options
) -> list[Identity] | Unreadable:
    """Name the event by ``X-GitHub-Delivery``; a form delivery's payload is its JSON field."""
    payload = _form_payload(body) if _is_form(headers) else None
    event = document(body if payload is None else payload)
    if isinstance(event, Unreadable):
        return event
    key = unsigned_key(headers, "X-GitHub-Delivery")
    if isinstance(key, Unreadable):
        return key
    kind = header(headers, "X-GitHub-Event")
    return [
        Identity(key, "" if isinstance(kind, Refused) else event_type(kind), None, payload)
    ]


def unsigned_key(headers: Mapping[str, str], *names: str) -> str | Unreadable:
    """Take a key from a header outside the signature; two folded into one line are refused."""
    sent = header(headers, *names)
    if isinstance(sent, Refused) or "," in sent:
        return Unreadable("no event id")
    return identity_key([sent])


def _is_form(headers: Mapping[str, str]) -> bool:
    sent = header(headers, "Content-Type")
    return isinstance(sent, str) and sent.partition(";")[0].strip().lower() == _FORM


def _form_payload(body: bytes) -> bytes:
    try:
        fields = parse_qsl(
            body.decode("ascii"), max_num_fields=_FORM_FIELDS_MAX, errors="surrogateescape"
        )
    except ValueError:
        return b""
    payload = "".join(value for name, value in fields if name == "payload")
    return payload.encode("utf-8", "surrogateescape")


SCHEME = Scheme(
    name="github", version=1, verify=verify, identities=identities, identity_is_signed=never
)
