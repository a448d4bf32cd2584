"""A secret on its way to the one page that shows it: sealed in the session, gone once read."""

from base64 import b64decode, b64encode

from reliability.console.access import OperatorRequest
from reliability.models import sealing

KEY = "reliability_shown_once"


def put_aside(request: OperatorRequest, about: str, text: str) -> None:
    """Keep a secret for the next page about ``about``; one that was kept before is dropped."""
    sealed = sealing.seal(text, about=_about(request, about))
    request.session[KEY] = {about: b64encode(sealed).decode()}


def take_out(request: OperatorRequest, about: str) -> str:
    """Return what was put aside, for the last time; empty where there is nothing."""
    kept: dict[str, str] = request.session.get(KEY, {})
    if about not in kept:
        return ""
    del request.session[KEY]
    return sealing.unseal(b64decode(kept[about]), about=_about(request, about))


def _about(request: OperatorRequest, about: str) -> str:
    return f"{request.tenant.pk}|{request.user.pk}|{about}"
