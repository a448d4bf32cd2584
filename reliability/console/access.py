"""Who may do what, and in which tenant: every console view is entered through here."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import wraps
from typing import Any, TypeVar, cast

from django.contrib.auth import logout
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import redirect_to_login
from django.core.checks import CheckMessage, Error
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, URLResolver
from django.utils import timezone
from django.views.decorators.csrf import csrf_protect
from django_htmx.middleware import HtmxDetails

from reliability.console.filters import NotUnderstood
from reliability.console.middleware import protect
from reliability.models import Membership, Tenant

View = Callable[..., HttpResponseBase]
M = TypeVar("M", bound=Model)

ANY_MEMBER = "any member"
"""Declared by views that show nothing but the member's own rights and choices."""
ANYBODY = "anybody"
"""Declared by views that answer strangers: liveness and readiness, without detail."""
LAST_USED = "reliability_last_used"
IDLE_MAX = timedelta(minutes=30)
NOTED_EVERY = timedelta(minutes=1)
"""Use of a session is written down no more often than this."""
TENANT_CHOICE = "reliability_tenant"
"""Session key: the tenant a member of several last chose."""


@dataclass(frozen=True)
class Member:
    """One person in one tenant, and what their role lets them do there."""

    tenant: Tenant
    role: str
    may: frozenset[str]
    tenants: tuple[Tenant, ...]


class OperatorRequest(HttpRequest):
    """What a guarded view receives: the member is known and the clock has been read."""

    htmx: HtmxDetails
    member: Member
    tenant: Tenant
    now: datetime


def page(needs: str) -> Callable[[View], View]:
    """Guard a view that only shows; ``needs`` is a permission of the role in this tenant."""
    return lambda view: _guard(view, needs=needs, methods=("GET", "HEAD"))


def act(needs: str) -> Callable[[View], View]:
    """Guard a view that changes something: POST, CSRF token, no request from another site."""
    return lambda view: csrf_protect(_guard(view, needs=needs, methods=("POST",)))


def anybody(view: View) -> View:
    """Let strangers in."""

    @wraps(view)
    def entered(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return protect(view(request, *args, **kwargs))

    entered.needs = ANYBODY  # type: ignore[attr-defined]
    return login_not_required(entered)


def for_tenant(request: OperatorRequest, rows: "QuerySet[M]") -> "QuerySet[M]":
    """Return the rows of the request's tenant: the one place that scopes."""
    return rows.filter(tenant=request.tenant)


def owned(request: OperatorRequest, rows: "QuerySet[M]", **names: Any) -> M:
    """Return the tenant's one row; another tenant's is a 404 like one that never existed."""
    return get_object_or_404(for_tenant(request, rows), **names)


def _guard(view: View, *, needs: str, methods: tuple[str, ...]) -> View:
    @wraps(view)
    def entered(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.method not in methods:
            return protect(HttpResponseNotAllowed(methods))
        if not request.user.is_authenticated:
            return protect(_to_login(request))
        if _idle(request):
            logout(request)
            return protect(_to_login(request))
        operator = _admitted(request, needs)
        try:
            return protect(view(operator, *args, **kwargs))
        except NotUnderstood as err:
            return protect(_not_understood(operator, str(err)))

    entered.needs = needs  # type: ignore[attr-defined]
    return entered


def _to_login(request: HttpRequest) -> HttpResponseBase:
    """Lead to the sign-in; a part that refreshes itself takes its whole page there.

    Followed silently, the redirect would put nothing in the place of a list.
    """
    there = redirect_to_login(request.get_full_path())
    if "HX-Request" in request.headers:
        return HttpResponse(headers={"HX-Redirect": there.url})
    return there


def _idle(request: HttpRequest) -> bool:
    """Tell whether nobody used this session for too long; a page's own refresh is no use of it."""
    now = timezone.now()
    last = request.session.get(LAST_USED)
    used_at = datetime.fromisoformat(last) if last else now
    if now - used_at > IDLE_MAX:
        return True
    if not last or (now - used_at > NOTED_EVERY and "HX-Request" not in request.headers):
        request.session[LAST_USED] = now.isoformat()
    return False


def _admitted(request: HttpRequest, needs: str) -> OperatorRequest:
    if request.method == "POST" and request.headers.get("Sec-Fetch-Site") == "cross-site":
        raise PermissionDenied("This request came from another site. Nothing was changed.")
    operator = cast("OperatorRequest", request)
    operator.member = member_of(request)
    operator.tenant = operator.member.tenant
    operator.now = timezone.now()
    if needs != ANY_MEMBER and needs not in operator.member.may:
        raise PermissionDenied(
            f"Your role in {operator.tenant} is {operator.member.role}; "
            f"this needs the permission “{needs.replace('_', ' ')}”. Ask an admin of the tenant."
        )
    return operator


def member_of(request: HttpRequest) -> Member:
    """Return the signed-in person's place: the tenant of their choice, or their first one.

    Raises PermissionDenied for somebody who is in no tenant.
    """
    memberships = list(
        Membership.objects.filter(user_id=request.user.pk or 0)
        .select_related("tenant", "role")
        .order_by("tenant__name", "tenant_id")
    )
    if not memberships:
        raise PermissionDenied("You are signed in, but a member of no tenant yet.")
    chosen = request.session.get(TENANT_CHOICE)
    here = next((m for m in memberships if m.tenant_id == chosen), memberships[0])
    codenames = here.role.permissions.filter(content_type__app_label="reliability")
    return Member(
        tenant=here.tenant,
        role=here.role.name.removeprefix("reliability "),
        may=frozenset(codenames.values_list("codename", flat=True)),
        tenants=tuple(m.tenant for m in memberships),
    )


def choose_tenant(request: OperatorRequest, public_id: str) -> None:
    """Remember which of the member's own tenants is looked at."""
    for tenant in request.member.tenants:
        if str(tenant.public_id) == public_id:
            request.session[TENANT_CHOICE] = tenant.pk
            return
    raise Http404


def _not_understood(request: OperatorRequest, why: str) -> HttpResponseBase:
    from reliability.console.pages import show  # noqa: PLC0415 - pages build on access

    return show(request, "not_understood.html", {"why": why, "path": request.path}, status=400)


def every_view_declares_a_permission(**_: Any) -> list[CheckMessage]:
    """Check E030: nobody can route a console view and forget who may open it."""
    from reliability.console.urls import urlpatterns  # noqa: PLC0415 - views need the app registry

    return [
        Error(
            f"The console's view at {route!r} declares no permission.",
            hint="Decorate it with access.page(needs=…), access.act(needs=…) or access.anybody.",
            id="reliability.E030",
        )
        for route, view in routed(urlpatterns)
        if not getattr(view, "needs", "")
    ]


def routed(
    patterns: "list[URLPattern | URLResolver]", prefix: str = ""
) -> Iterator[tuple[str, View]]:
    """Yield every route with its view, included patterns too."""
    for pattern in patterns:
        route = prefix + str(pattern.pattern)
        match pattern:
            case URLResolver():
                yield from routed(pattern.url_patterns, route)
            case _:
                yield route, pattern.callback


def enter_tenant(request: OperatorRequest, slug: str) -> None:
    """Look at the tenant a link speaks of, if the person is a member there; else it is a 404."""
    named = [tenant for tenant in request.member.tenants if tenant.slug == slug]
    if not named:
        raise Http404
    request.session[TENANT_CHOICE] = named[0].pk
