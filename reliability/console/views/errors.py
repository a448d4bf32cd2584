"""The pages for what went wrong on our side, in the console's dress and without the database."""

import sys

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from psycopg_pool import PoolTimeout

from reliability.console.access import anybody

AWAY = (InterfaceError, OperationalError, PoolTimeout)


@anybody
def server_error(request: HttpRequest) -> HttpResponse:
    """Answer 503 while the database is away, 500 for anything else that broke.

    For ``handler500`` of a root URLconf; the exception is the one being handled.
    """
    status = 503 if isinstance(sys.exc_info()[1], AWAY) else 500
    response = render(request, f"{status}.html", status=status)
    if status == 503:  # noqa: PLR2004 - service unavailable
        response.headers["Retry-After"] = "10"
    return response
