"""What every view of the API asks first: the method, and whose token this is."""

import logging
from collections.abc import Callable
from functools import wraps
from http import HTTPStatus
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from reliability.errors import TryAgain
from reliability.models import ApiToken, Tenant

logger = logging.getLogger(__name__)

View = Callable[..., HttpResponse]

BEARER = "Bearer "


def say(status: HTTPStatus, why: str, **headers: str) -> HttpResponse:
    """Answer with a reason, in the one form every refusal here has."""
    return JsonResponse({"error": why}, status=status, headers=headers)


def api(method: str) -> Callable[[View], View]:
    """Admit one method and the holder of a live token (RFC 6750 section 2.1); never a cookie.

    The view is called with the token's tenant: nothing else decides whose jobs it sees.
    """

    def enclose(view: View) -> View:
        @wraps(view)
        def entered(request: HttpRequest, **kwargs: Any) -> HttpResponse:
            if request.method != method:
                return say(HTTPStatus.METHOD_NOT_ALLOWED, f"send a {method}", Allow=method)
            try:
                tenant = _holder(request)
                if tenant is None:
                    return say(
                        HTTPStatus.UNAUTHORIZED, "no such token",
                        **{"WWW-Authenticate": "Bearer"},
                    )  # fmt: skip
                return view(request, tenant, **kwargs)
            except (DatabaseError, TryAgain):
                logger.warning("api_unavailable")
                return say(HTTPStatus.SERVICE_UNAVAILABLE, "try again", **{"Retry-After": "5"})

        return csrf_exempt(login_not_required(entered))

    return enclose


def _holder(request: HttpRequest) -> Tenant | None:
    given = request.headers.get("Authorization", "")
    return ApiToken.holder(given.removeprefix(BEARER)) if given.startswith(BEARER) else None
