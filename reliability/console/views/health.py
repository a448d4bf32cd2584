"""What a load balancer and outside watchers ask: alive, ready, figures; no detail to strangers."""

import hmac
from ipaddress import ip_address

from django.conf import settings
from django.db import DatabaseError, connection
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST

from reliability.conf import conf
from reliability.console import metrics as figures
from reliability.console.access import anybody
from reliability.models import Run


@anybody
@require_safe
def healthz(_request: HttpRequest) -> HttpResponse:
    """Answer 200 while the database answers and the sweep had a good pass lately, else 503."""
    since = timezone.now() - conf().sweep_alarm_after
    try:
        swept = Run.objects.filter(job="sweep", ok=True, ended_at__gte=since).exists()
    except DatabaseError:
        swept = False
    return _answer(good=swept)


@anybody
@require_safe
def readyz(_request: HttpRequest) -> HttpResponse:
    """Answer 200 when this process reaches the migrated database, else 503."""
    try:
        Run.objects.order_by().values("pk")[:1].exists()
        connection.ensure_connection()
    except DatabaseError:
        return _answer(good=False)
    return _answer(good=True)


PASSED_ON = ("Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Proto", "X-Real-IP")
"""Headers that say a proxy stands between: the peer is then the proxy, not who asks."""


@anybody
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Answer Prometheus with the figures: to whoever shows the token, and totals to loopback.

    Anybody else is told 404: without ``RELIABILITY_METRICS_TOKEN`` there is nothing here.
    """
    named = _shows_token(request)
    if not (named or _on_this_machine(request)):
        raise Http404
    try:
        said = figures.metrics(named=named)
    except DatabaseError:
        return _answer(good=False)
    return HttpResponse(said, content_type=CONTENT_TYPE_LATEST)


def _shows_token(request: HttpRequest) -> bool:
    expected: str = getattr(settings, "RELIABILITY_METRICS_TOKEN", "")
    scheme, _, shown = request.headers.get("Authorization", "").partition(" ")
    same = hmac.compare_digest(shown.strip().encode(), expected.encode())
    return bool(expected) and scheme.lower() == "bearer" and same


def _on_this_machine(request: HttpRequest) -> bool:
    if any(name in request.headers for name in PASSED_ON):
        return False
    try:
        return ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False


def _answer(*, good: bool) -> HttpResponse:
    return HttpResponse(
        "ok\n" if good else "not ok\n", status=200 if good else 503, content_type="text/plain"
    )
