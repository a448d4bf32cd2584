"""Headers that keep a hostile payload from becoming a program in an operator's browser."""

from collections.abc import Callable

from django.http import HttpRequest
from django.http.response import HttpResponseBase

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def protect(response: HttpResponseBase) -> HttpResponseBase:
    """Add every header the response does not carry yet."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response


class SecurityHeaders:
    """Protects every response, errors included. Views of the console also do it themselves."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return protect(self.get_response(request))
