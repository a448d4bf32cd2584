"""Reads a request's body whole, byte for byte, or says by its headers why it cannot be read."""

from dataclasses import dataclass
from http import HTTPStatus

from django.http import HttpRequest, UnreadablePostError

LENGTH_DIGITS_MAX = 12


@dataclass(frozen=True)
class Unread:
    status: HTTPStatus
    why: str


def read_body(request: HttpRequest, *, bytes_max: int) -> bytes | Unread:
    """Read the raw bytes, before anything touches POST or FILES; at most ``bytes_max``.

    Not by ``request.body``: its limit is the whole project's, this one is the caller's.
    """
    unread = _by_headers(request, bytes_max)
    if unread is not None:
        return unread
    length = int(request.headers["Content-Length"])
    try:
        body = request.read(length)
    except UnreadablePostError:
        body = b""
    if len(body) < length:
        return Unread(HTTPStatus.BAD_REQUEST, "body ended early")
    return body


def _by_headers(request: HttpRequest, bytes_max: int) -> Unread | None:
    encoding = request.headers.get("Content-Encoding", "").strip().lower()
    if encoding not in {"", "identity"}:
        return Unread(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send the body uncompressed")
    length = request.headers.get("Content-Length", "").strip()
    if not length:
        return Unread(HTTPStatus.LENGTH_REQUIRED, "send a Content-Length")
    if not (length.isascii() and length.isdigit()):
        return Unread(HTTPStatus.BAD_REQUEST, "the Content-Length is not a number")
    if len(length) > LENGTH_DIGITS_MAX or int(length) > bytes_max:
        return Unread(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body too large")
    return None
