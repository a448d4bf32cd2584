"""What a load balancer and an outside watcher ask: alive, ready; no detail."""

from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from reliability.conf import conf
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


def _answer(*, good: bool) -> HttpResponse:
    return HttpResponse(
        "ok\n" if good else "not ok\n", status=200 if good else 503, content_type="text/plain"
    )
