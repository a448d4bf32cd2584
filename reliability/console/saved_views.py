"""Saved views: a list's filter under a name, one person's own or shared in the tenant."""

from dataclasses import dataclass

from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.http import Http404

from reliability import sql
from reliability.console.access import OperatorRequest, for_tenant
from reliability.console.filters import NotUnderstood
from reliability.models import AuditEntry, SavedView

VIEWS_MAX = 50
"""Own views of one person in one tenant; and as many shared ones."""
NAME_MAX = 60
QUERY_MAX = 4_000
SHARES = "requeue_deadletter"
"""Who may requeue may share a view: operators and above."""
TIDIES = "change_membership"
"""Who may change members may delete anybody's shared view: admins."""


@dataclass(frozen=True)
class Shown:
    """One view as a list shows it."""

    view: SavedView
    current: bool
    deletable: bool


def shown(request: OperatorRequest) -> list[Shown]:
    """Return the views of the page asked for that this person may open, shared ones first."""
    views = _seen(request).filter(page=_page_of(request)).order_by("-shared", "name", "pk")
    asked = request.GET.copy()
    asked.pop("after", None)
    asked.pop("select", None)
    return [
        Shown(view, view.query == asked.urlencode(), may_delete(request, view))
        for view in views[: 2 * VIEWS_MAX]
    ]


def may_delete(request: OperatorRequest, view: SavedView) -> bool:
    """Tell whether a person may delete a view: its owner, or an admin for a shared one."""
    return view.owner_id == request.user.pk or (view.shared and TIDIES in request.member.may)


def save(
    request: OperatorRequest, page: str, query: str, *, name: str, shared: bool
) -> SavedView:
    """Keep a filter under a name. ``query`` was read by its page's filter already.

    Raises NotUnderstood for no name, a name that is taken, and one view too many; PermissionDenied
    where the role may not share.
    """
    if not name or len(name) > NAME_MAX:
        raise NotUnderstood(f"A view needs a name of at most {NAME_MAX} characters.")
    if not query or len(query) > QUERY_MAX:
        raise NotUnderstood("There is no filter to save: narrow the list first.")
    if shared and SHARES not in request.member.may:
        raise PermissionDenied("Your role may keep views of its own, but not share them.")
    with transaction.atomic(using=sql.database().alias):
        try:
            with transaction.atomic(using=sql.database().alias):
                view = SavedView.objects.create(
                    tenant=request.tenant, page=page, name=name, query=query, shared=shared,
                    owner_id=request.user.pk or 0, created_at=request.now,
                )  # fmt: skip
        except IntegrityError:
            raise NotUnderstood(f"A view named “{name}” exists; delete it first.") from None
        _noted(request, view, "save view")
        if _beside(request, shared=shared).count() > VIEWS_MAX:
            raise NotUnderstood(f"At most {VIEWS_MAX} views are kept; delete one first.")
    return view


def delete(request: OperatorRequest, public_id: str) -> SavedView:
    """Forget a view; the rows it found stay. A view this person cannot see is a 404."""
    with transaction.atomic(using=sql.database().alias):
        view = _seen(request).select_for_update().filter(public_id=public_id).first()
        if view is None:
            raise Http404
        if not may_delete(request, view):
            raise PermissionDenied("Only its owner or an admin deletes a shared view.")
        _noted(request, view, "delete view")
        view.delete()
    return view


def _page_of(request: OperatorRequest) -> str:
    match = request.resolver_match
    return (match.url_name or "") if match else ""


def _seen(request: OperatorRequest) -> "QuerySet[SavedView]":
    mine_or_shared = Q(shared=True) | Q(owner_id=request.user.pk)
    return for_tenant(request, SavedView.objects.all()).filter(mine_or_shared)


def _beside(request: OperatorRequest, *, shared: bool) -> "QuerySet[SavedView]":
    views = for_tenant(request, SavedView.objects.filter(shared=shared))
    return views if shared else views.filter(owner_id=request.user.pk)


def _noted(request: OperatorRequest, view: SavedView, act: str) -> None:
    AuditEntry.objects.record(
        request.tenant, actor=request.user.get_username(), user_id=request.user.pk, act=act,
        about="saved view", about_id=str(view.public_id), page=view.page, name=view.name,
        query=view.query, shared=view.shared,
    )  # fmt: skip
