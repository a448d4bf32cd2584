"""The HTTP door: authenticated and stored means 2xx, and nothing before it is committed."""

import hashlib
import ipaddress
import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from http import HTTPStatus

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import Error, connections, transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt

from reliability.claim import refusals
from reliability.claim.accept import Asked, Delivered, Fate
from reliability.claim.certificates import trust
from reliability.claim.door import Door, door
from reliability.claim.raw import Unread, read_body
from reliability.claim.route import route
from reliability.claim.signatures import Refused, Verified, identities, verify
from reliability.claim.together import claim_together
from reliability.errors import NotWorked, TryAgain
from reliability.killing import Point, reach
from reliability.models import Receipt, Source

logger = logging.getLogger(__name__)

TRIES = 3

Take = Callable[[Source, Sequence[Asked], Delivered], list[Fate]]
work_first: Take | None = None
"""How to work a delivery before it is answered; set by a layer above, which knows workers."""


View = Callable[[HttpRequest, str], HttpResponse]


def _committed(view: View) -> View:
    """Keep a project's ATOMIC_REQUESTS from the door: what it answers, it has committed."""
    for alias in connections:
        view = transaction.non_atomic_requests(using=alias)(view)
    return view


@_committed
@csrf_exempt
@login_not_required
def receive(request: HttpRequest, token: str) -> HttpResponse:
    """Answer one delivery. The token alone decides tenant and source; nothing in the body does."""
    try:
        return _receive(request, token)
    except (Error, NotWorked, TryAgain):
        logger.warning("door_unavailable")
    except Exception:  # never a 500: the provider is to come again
        logger.exception("door_failed")
    return unavailable()


def _receive(request: HttpRequest, token: str) -> HttpResponse:
    if request.method != "POST":
        return _say(HTTPStatus.METHOD_NOT_ALLOWED, "send a POST", Allow="POST")
    entry = door(token)
    if entry is None:
        return _say(HTTPStatus.NOT_FOUND, "unknown endpoint")
    body = read_body(request, bytes_max=entry.body_bytes_max)
    if isinstance(body, Unread):
        return _say(body.status, body.why)
    return _judge(request, entry, body)


def _judge(request: HttpRequest, entry: Door, body: bytes) -> HttpResponse:
    now = timezone.now()
    peer = _peer(request)
    verdict = verify(
        entry.scheme.name,
        body=body,
        headers=request.headers,
        secrets=[text for _, text in entry.secrets],
        url=f"{settings.RELIABILITY_BASE_URL}{request.path}",
        now=now,
        options=_options(request, entry),
    )
    if isinstance(verdict, Refused):
        refusals.count(entry.source, verdict.reason, body=body, peer=peer)
        logger.info(
            "delivery_refused", extra={"source": entry.source.pk, "why": verdict.reason}
        )
        return _say(entry.acknowledgement.refused_status, "not authenticated")
    delivered = _delivered(entry, verdict, body, peer)
    fates = _claim(entry, _asked(request, entry, body, now), delivered)
    reach(Point.CLAIMED)
    return _acknowledge(entry, fates)


def _options(request: HttpRequest, entry: Door) -> Mapping[str, object]:
    if entry.scheme.needs_certificates:
        return {**entry.source.options, **trust(entry.source, request.headers)}
    return entry.source.options


def _delivered(entry: Door, verdict: Verified, body: bytes, peer: str | None) -> Delivered:
    return Delivered(
        peer=peer,
        size_bytes=len(body),
        sha256=hashlib.sha256(body).hexdigest(),
        answer=entry.acknowledgement.status,
        scheme=verdict.scheme,
        secret_id=entry.secrets[verdict.secret_index][0],
        verifier_version=verdict.verifier_version,
        signed_at=verdict.signed_at,
    )


def _asked(request: HttpRequest, entry: Door, body: bytes, now: datetime) -> list[Asked]:
    found = identities(
        entry.scheme.name, body=body, headers=request.headers, options=entry.source.options
    )
    return route(entry, found, body=body, headers=request.headers, now=now)


def _claim(entry: Door, asked: list[Asked], delivered: Delivered) -> list[Fate]:
    """Claim, asking again where a concurrent delivery of the same key won a race."""
    take = _taker(entry.source)
    for _ in range(TRIES - 1):
        try:
            return take(entry.source, asked, delivered)
        except TryAgain:
            continue
    return take(entry.source, asked, delivered)


def _taker(source: Source) -> Take:
    if source.answer == Source.Answer.AT_ONCE:
        return _claim_only
    if work_first is None:
        raise TryAgain("nothing here works a delivery before it is answered")
    return work_first


def _claim_only(source: Source, asked: Sequence[Asked], delivered: Delivered) -> list[Fate]:
    return claim_together(source, asked, delivered=delivered)


def _acknowledge(entry: Door, fates: list[Fate]) -> HttpResponse:
    logger.info(
        "delivery_taken",
        extra={"source": entry.source.pk, "verdicts": [fate.verdict for fate in fates]},
    )
    if entry.acknowledgement.body is not None:
        return HttpResponse(
            entry.acknowledgement.body, status=entry.acknowledgement.status,
            content_type="text/plain",
        )  # fmt: skip
    new = any(fate.verdict == Receipt.Verdict.ACCEPTED for fate in fates)
    answer: dict[str, object] = {
        "status": "accepted" if new else "duplicate",
        "events": len(fates),
    }
    if len(fates) == 1 and not new:
        answer |= {"state": fates[0].state, "already_applied_by": fates[0].claimant}
        if fates[0].done_at:
            answer["done_on"] = fates[0].done_at.date().isoformat()
    return JsonResponse(answer, status=entry.acknowledgement.status)


def _peer(request: HttpRequest) -> str | None:
    try:
        return str(ipaddress.ip_address(request.META.get("REMOTE_ADDR", "").partition("%")[0]))
    except ValueError:
        return None


def _say(status: int, why: str, **headers: str) -> HttpResponse:
    return JsonResponse({"error": why}, status=status, headers=headers)


def unavailable() -> HttpResponse:
    """Ask the provider to come again."""
    return JsonResponse(
        {"error": "try again"},
        status=HTTPStatus.SERVICE_UNAVAILABLE,
        headers={"Retry-After": "5"},
    )
