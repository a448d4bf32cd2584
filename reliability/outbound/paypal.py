"""Asks PayPal for an event by its id, so that a body nobody signed is not taken at its word."""

import base64
import json
import time
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from urllib.parse import quote, urlencode

from reliability.errors import AddressRefused, NoAnswer
from reliability.models import ApiCredential, Source
from reliability.models.sealing import CannotUnseal
from reliability.outbound.client import Answer, Request, send

URLS = {
    Source.Mode.LIVE: "https://api-m.paypal.com",
    Source.Mode.TEST: "https://api-m.sandbox.paypal.com",
}
# What a handler may rely on. Links and transmissions differ from one reading to the next.
COMPARED = ("id", "event_type", "resource_type", "resource")
ANSWER_BYTES_MAX = 1024 * 1024
TOKEN_SPARE_SECONDS = 60.0


@dataclass(frozen=True)
class Confirmed:
    """The provider has this event, with this content."""


@dataclass(frozen=True)
class Denied:
    """It has not, or nobody can ask: a person decides. Asking again would not help."""

    why: str


@dataclass(frozen=True)
class NotNow:
    """No answer this time; ask again later."""

    why: str


Word = Confirmed | Denied | NotNow

_tokens: dict[int, tuple[float, str]] = {}


def confirm(source: Source, body: bytes) -> Word:
    """Compare a received event with PayPal's own copy (developer.paypal.com, "Show event
    notification details").

    Needs the source's API credential, ``client id:secret``. The address follows the source's
    mode, or its option ``api_url``.
    """
    credential = ApiCredential.objects.filter(source=source).first()
    if credential is None:
        return Denied("no API credential to ask PayPal with: add one, then requeue")
    try:
        token = _token(source, credential.open())
        received = _read(body)
        answer = _ask(source, "GET", _path(received), {"Authorization": f"Bearer {token}"})
    except (NoAnswer, _Refused) as error:
        return NotNow(str(error))
    except (AddressRefused, CannotUnseal) as error:
        return Denied(str(error))
    return _judge(source, answer, received)


def forget() -> None:
    """Forget the access tokens. For tests."""
    _tokens.clear()


class _Refused(Exception):
    """PayPal turned our own credential away, or answered with what is no token."""


def _judge(source: Source, answer: Answer, received: dict[str, Any]) -> Word:
    if answer.status == 404:  # noqa: PLR2004 - HTTP
        return Denied("PayPal knows no event of this id")
    if answer.status != 200:  # noqa: PLR2004 - HTTP
        _tokens.pop(source.pk, None)
        return NotNow(f"PayPal answered {answer.status}")
    genuine = _read(answer.body)
    differing = [name for name in COMPARED if genuine.get(name) != received.get(name)]
    if differing:
        return Denied(f"PayPal's own copy differs in: {', '.join(differing)}")
    return Confirmed()


def _token(source: Source, credential: str) -> str:
    kept = _tokens.get(source.pk)
    if kept and kept[0] > time.monotonic():
        return kept[1]
    basic = base64.b64encode(credential.encode()).decode()
    answer = _ask(
        source,
        "POST",
        "/v1/oauth2/token",
        {
            "Authorization": f"Basic {basic}",
            "Content-Type": "application/x-www-form-urlencoded",
        },
    )
    given = _read(answer.body)
    token, seconds = given.get("access_token"), given.get("expires_in")
    if answer.status != 200 or not isinstance(token, str) or not isinstance(seconds, int):  # noqa: PLR2004 - HTTP
        raise _Refused(f"PayPal gave no access token: {answer.status}")
    _tokens[source.pk] = (time.monotonic() + seconds - TOKEN_SPARE_SECONDS, token)
    return token


def _ask(source: Source, method: str, path: str, headers: dict[str, str]) -> Answer:
    base = source.options.get("api_url") or URLS[Source.Mode(source.mode)]
    body = (
        urlencode({"grant_type": "client_credentials"}).encode() if method == "POST" else b""
    )
    return send(
        Request(
            method=method,
            url=f"{base}{path}",
            headers={"Accept": "application/json", **headers},
            body=body,
            bytes_max=ANSWER_BYTES_MAX,
        )
    )


def _path(received: dict[str, Any]) -> str:
    return f"/v1/notifications/webhooks-events/{quote(str(received.get('id')), safe='')}"


def _read(body: bytes) -> dict[str, Any]:
    """Read an object, fractions exact; empty for anything else."""
    try:
        value = json.loads(body, parse_float=Decimal)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
