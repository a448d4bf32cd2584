"""Fetches the certificates PayPal signs with: from its own hosts only, kept, and not too often."""

import logging
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from threading import Lock

from reliability.claim.signatures.paypal import certificate_url
from reliability.claim.signatures.paypal_certificate import PEM_BYTES_MAX
from reliability.errors import AddressRefused, NoAnswer, TryAgain
from reliability.models import Source
from reliability.outbound import Answer, Request, send

logger = logging.getLogger(__name__)

FETCH_TIME = timedelta(seconds=3)
KEPT_SECONDS = 24 * 3600.0
MISSING_SECONDS = 300.0
KEPT_MAX = 200
FETCHES_PER_MINUTE_MAX = 10


@dataclass(frozen=True)
class _Kept:
    pem: bytes | None
    until: float


_kept: dict[str, _Kept] = {}
_fetched_at: list[float] = []
_lock = Lock()


def trust(source: Source, headers: Mapping[str, str]) -> Mapping[str, object]:
    """Return what a certificate scheme needs beside the source's options.

    A URL that is not one of PayPal's gets nothing, and so no pass. The roots are the system's,
    or PEM text in the source's option ``roots``. Raises ``TryAgain`` when a certificate cannot
    be fetched right now: an authentic delivery must not be told that it is a forgery.
    """
    given = source.options.get("roots")
    roots = given.encode() if isinstance(given, str) else system_roots()
    url = certificate_url(headers)
    pem = _certificate(url) if url else None
    return {"certificates": {url: pem} if url and pem else {}, "roots": roots}


@cache
def system_roots() -> bytes:
    """Return the roots this machine trusts, as PEM; empty where it has none."""
    found = ssl.create_default_context().get_ca_certs(binary_form=True)
    return "".join(ssl.DER_cert_to_PEM_cert(one) for one in found).encode()


def forget() -> None:
    """Forget every certificate and every fetch. For tests."""
    _kept.clear()
    _fetched_at.clear()


def _certificate(url: str) -> bytes | None:
    kept = _kept.get(url)
    if kept is None or kept.until < time.monotonic():
        kept = _fetch(url)
        with _lock:
            if len(_kept) >= KEPT_MAX:
                _kept.clear()
            _kept[url] = kept
    return kept.pem


def _fetch(url: str) -> _Kept:
    _count()
    try:
        answer = send(Request(method="GET", url=url, time=FETCH_TIME, bytes_max=PEM_BYTES_MAX))
    except (NoAnswer, AddressRefused) as error:
        logger.warning("certificate_not_fetched", extra={"why": str(error)})
        raise TryAgain("the certificate could not be fetched") from None
    if answer.status >= 500:  # noqa: PLR2004 - HTTP: it may work in a moment
        raise TryAgain("the certificate could not be fetched")
    pem = _pem(answer)
    return _Kept(pem, time.monotonic() + (KEPT_SECONDS if pem else MISSING_SECONDS))


def _pem(answer: Answer) -> bytes | None:
    genuine = answer.status == 200 and not answer.cut and b"CERTIFICATE" in answer.body  # noqa: PLR2004 - HTTP OK
    return answer.body if genuine else None


def _count() -> None:
    """Allow ten fetches a minute, whatever senders make up; raise ``TryAgain`` beyond."""
    with _lock:
        now = time.monotonic()
        _fetched_at[:] = [at for at in _fetched_at if at > now - 60]
        if len(_fetched_at) >= FETCHES_PER_MINUTE_MAX:
            raise TryAgain("too many new certificates at once")
        _fetched_at.append(now)
