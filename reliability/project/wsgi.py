"""The web server's way in: webhooks straight to the door, all else through Django's layers."""

import logging
import os
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

from django.core.exceptions import DisallowedHost
from django.core.handlers.wsgi import WSGIRequest
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from django.http import HttpResponse, JsonResponse

from reliability.checks import refuse_to_start

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "reliability.project.settings")

logger = logging.getLogger(__name__)

pages = get_wsgi_application()
refuse_to_start()

# Imported late: its models need the application that was just made.
from reliability.claim import webhook  # noqa: E402

DOOR = "/hooks/"


def application(environ: dict[str, Any], start: Any) -> Iterable[bytes]:
    """Answer one request. A provider has no session, no form and no page to be kept from."""
    path = environ.get("PATH_INFO", "")
    if not path.startswith(DOOR):
        return pages(environ, start)
    token = path.removeprefix(DOOR).removesuffix("/")
    response = _take(environ, token)
    start(
        f"{response.status_code} {response.reason_phrase}",
        [(name, str(value)) for name, value in response.items()],
    )
    return [response.content]


def _take(environ: dict[str, Any], token: str) -> HttpResponse:
    request = WSGIRequest(environ)
    try:
        request.get_host()
        response = webhook.receive(request, token)
    except DisallowedHost:
        response = JsonResponse({"error": "unknown host"}, status=HTTPStatus.BAD_REQUEST)
    except Exception:  # whatever it was, the provider is to come again
        logger.exception("door_failed")
        response = JsonResponse({"error": "try again"}, status=HTTPStatus.SERVICE_UNAVAILABLE)
        response["Retry-After"] = "5"
    finally:
        close_old_connections()
    response["Content-Length"] = str(len(response.content))
    response["X-Content-Type-Options"] = "nosniff"
    return response
