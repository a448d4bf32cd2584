"""The health page: every part of the machinery with a sentence, for people."""

from django.http import HttpResponse

from reliability.console.access import OperatorRequest, page
from reliability.console.health import BAD, WARN, Check, checks
from reliability.console.pages import show


@page(needs="view_job")
def index(request: OperatorRequest) -> HttpResponse:
    """Show each check; ``/healthz`` is the short form for machines."""
    found = list(checks(request))
    context = {"checks": found, "say": _said(found)}
    return show(request, "health/index.html", context)


def _said(found: list[Check]) -> str:
    broken = [check.name.lower() for check in found if check.state == BAD]
    doubtful = [check.name.lower() for check in found if check.state == WARN]
    if broken:
        return f"Somebody is needed: {', '.join(broken)}."
    if doubtful:
        return f"It works, and this deserves a look: {', '.join(doubtful)}."
    return "Everything that is watched here is well."
