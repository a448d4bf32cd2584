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
from reliability.console.middleware import protect  # noqa: E402

DOOR = "/hooks/"


class Delivery(WSGIRequest):
    """A request to the door, which reads bytes: a content type nobody can parse is no error."""

    def _set_content_type_params(self, meta: Any) -> None:
        self.content_type, self.content_params = meta.get("CONTENT_TYPE", ""), {}


def application(environ: dict[str, Any], start: Any) -> Iterable[bytes]:
    """Answer one request. A provider has no session, no form and no page to be kept from."""
    path = environ.get("PATH_INFO", "")
    if not path.startswith(DOOR):
        return pages(environ, start)
    response = _answer(environ, path.removeprefix(DOOR).removesuffix("/"))
    start(
        f"{response.status_code} {response.reason_phrase}",
        [(name, str(value)) for name, value in response.items()],
    )
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [response.content]


def _answer(environ: dict[str, Any], token: str) -> HttpResponse:
    try:
        response = _take(Delivery(environ), token)
    except Exception:  # whatever it was, the provider is to come again
        logger.exception("door_failed")
        response = webhook.unavailable()
    response["Content-Length"] = str(len(response.content))
    protect(response)
    return response


def _take(request: WSGIRequest, token: str) -> HttpResponse:
    try:
        request.get_host()
        return webhook.receive(request, token)
    except DisallowedHost:
        return JsonResponse({"error": "unknown host"}, status=HTTPStatus.BAD_REQUEST)
    finally:
        close_old_connections()
