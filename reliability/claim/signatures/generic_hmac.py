"""Any sender that puts an HMAC of the body into a header; the source's options say how."""

import re
from collections.abc import Mapping

from reliability.claim.body import pointer
from reliability.claim.signatures.clock import instant, unix_time
from reliability.claim.signatures.headers import header
from reliability.claim.signatures.identity import document, event_type, identity_key
from reliability.claim.signatures.mac import digest, match, unbase64, unhex
from reliability.claim.signatures.verdicts import (
    MALFORMED,
    STALE,
    WRONG,
    Identity,
    Message,
    Options,
    Refused,
    Scheme,
    Signed,
    Unreadable,
    text_key,
)

ALGORITHMS = ("sha256", "sha384", "sha512")
WEAK_ALGORITHM = "sha1"
ENCODINGS = ("hex", "base64")
SECRET_ENCODINGS = ("text", "hex", "base64")

_TOKEN = re.compile(r"[A-Za-z0-9-]{1,100}")


def verify(message: Message) -> Signed | Refused:
    """Accept ``prefix + encoding(HMAC(body))``, or of ``time + separator + body`` if configured."""
    options = message.options
    value = header(message.headers, _text(options, "header"))
    if isinstance(value, Refused):
        return value
    signature = _signature(value, options)
    signed = _signed_time(message)
    if signature is None or isinstance(signed, Refused):
        return signed if isinstance(signed, Refused) else Refused(MALFORMED)
    prefix, result = signed
    algorithm = _text(options, "algorithm", "sha256")
    content = prefix + message.body
    expected = [(index, digest(key, content, algorithm)) for index, key in message.keys]
    index = match([signature], expected)
    return Refused(WRONG) if index is None else Signed(index, result.signed_at)


def identities(
    body: bytes, headers: Mapping[str, str], options: Options
) -> list[Identity] | Unreadable:
    """Name the event by the configured pointer or header, which has to be there."""
    event = document(body)
    if isinstance(event, Unreadable):
        return event

    def found(what: str) -> object:
        if path := _text(options, f"{what}_pointer"):
            return pointer(event, path)
        sent = header(headers, _text(options, f"{what}_header"))
        return None if isinstance(sent, Refused) else sent

    key = identity_key([found("id")])
    if isinstance(key, Unreadable):
        return key
    return [Identity(key, event_type(found("type")), instant(found("time")))]


def key(secret: str, options: Options) -> bytes | None:
    """Read the secret as text, hex or base64, as ``secret_encoding`` says."""
    match _text(options, "secret_encoding", "text"):
        case "hex":
            return unhex(secret.lower())
        case "base64":
            return unbase64(secret)
        case _:
            return text_key(secret, options)


def option_error(options: Options) -> str | None:
    """Say what is wrong with the options; MD5 is not offered, SHA-1 only by ``allow_sha1``."""
    allowed = (
        (*ALGORITHMS, WEAK_ALGORITHM) if options.get("allow_sha1") is True else ALGORITHMS
    )
    if not _TOKEN.fullmatch(_text(options, "header")):
        return "header must name the header that carries the signature"
    if _text(options, "algorithm", "sha256") not in allowed:
        return "algorithm must be sha256, sha384 or sha512"
    if _text(options, "encoding", "hex") not in ENCODINGS:
        return "encoding must be hex or base64"
    if _text(options, "secret_encoding", "text") not in SECRET_ENCODINGS:
        return "secret_encoding must be text, hex or base64"
    return _place_error(options)


def identity_is_signed(options: Options) -> bool:
    """Tell whether the event id lies in the body, which the signature covers."""
    return bool(_text(options, "id_pointer"))


def _place_error(options: Options) -> str | None:
    """Check where id, type and time are read: one place each, the id's is required."""
    for what in ("id", "type", "time"):
        path, name = _text(options, f"{what}_pointer"), _text(options, f"{what}_header")
        if (path and name) or (what == "id" and not path and not name):
            return f"give either {what}_pointer or {what}_header"
        if path and not path.startswith("/"):
            return f"{what}_pointer must be a JSON pointer such as /id"
        if name and not _TOKEN.fullmatch(name):
            return f"{what}_header must be a header's name"
    return None


def _signature(value: str, options: Options) -> bytes | None:
    prefix = _text(options, "prefix")
    if not value.startswith(prefix):
        return None
    text = value.removeprefix(prefix)
    return (
        unbase64(text)
        if _text(options, "encoding", "hex") == "base64"
        else unhex(text.lower())
    )


def _signed_time(message: Message) -> tuple[bytes, Signed] | Refused:
    """Return what is signed before the body: nothing, or the time with its separator."""
    name = _text(message.options, "timestamp_header")
    if not name:
        return b"", Signed(0)
    sent = header(message.headers, name)
    signed_at = None if isinstance(sent, Refused) else unix_time(sent)
    if isinstance(sent, Refused) or signed_at is None:
        return Refused(MALFORMED)
    if not message.is_timely(signed_at):
        return Refused(STALE)
    separator = _text(message.options, "timestamp_separator", ".")
    return (sent + separator).encode(), Signed(0, signed_at)


def _text(options: Options, name: str, default: str = "") -> str:
    value = options.get(name, default)
    return value if isinstance(value, str) else ""


SCHEME = Scheme(
    name="generic-hmac",
    version=1,
    verify=verify,
    identities=identities,
    key=key,
    option_error=option_error,
    identity_is_signed=identity_is_signed,
)
