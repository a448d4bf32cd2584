"""Pre-flight with evidence: what the world says of a letter's effect, asked when it is looked at."""

from dataclasses import dataclass
from datetime import datetime

from django.http import HttpResponse
from django.shortcuts import render

from reliability.console.access import OperatorRequest, page
from reliability.console.pages import show
from reliability.console.views.dead_letter import letter_of
from reliability.handlers import Applied, CannotTell, Evidence, NotApplied
from reliability.models import DeadLetter
from reliability.work.evidence import evidence_of


@dataclass(frozen=True)
class Preflight:
    """What a requeue would do, in words: the state that gives the tone, the verdict, the reason."""

    state: str
    verdict: str
    reason: str


@page(needs="view_deadletter")
def evidence(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Ask whether the letter's effect is in the world. Takes as long as the provider does."""
    letter = letter_of(request, public_id)
    context = {
        "letter": letter,
        "preflight": preflight(letter, evidence_of(letter.job), request.now),
        "now": request.now,
    }
    if request.htmx:
        return render(request, "console/dead_letters/_evidence.html", context)
    return show(request, "dead_letters/evidence.html", context)


def preflight(letter: DeadLetter, said: Evidence, now: datetime) -> Preflight:
    """Say what the evidence means for a requeue; a closed window needs proof."""
    closes_at = letter.job.not_after
    match said:
        case Applied(reference=reference):
            why = f"as {reference}. Resolve it instead of requeueing it."
            return Preflight("already applied", "Already applied", why)
        case NotApplied():
            return Preflight("will run", "Will run", "asked: not applied.")
        case CannotTell(reason=reason) if closes_at and closes_at <= now:
            why = f"and nothing shows that it was not applied: {reason or 'no answer'}."
            return Preflight("window closed", "Window closed", why)
        case CannotTell(reason=reason):
            why = (
                f"whether it was applied: {reason or 'no answer'}. It may repeat with its key."
            )
            return Preflight("cannot tell", "Cannot tell", why)
