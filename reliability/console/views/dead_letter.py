"""One dead letter: what happened, what it carried, and what a person may do about it."""

from collections.abc import Callable
from datetime import datetime, timedelta

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import redirect

from reliability import sql
from reliability.console.access import OperatorRequest, act, owned, page
from reliability.console.choices import act_of, version_seen
from reliability.console.filters import NotUnderstood
from reliability.console.letter import file_of
from reliability.console.pages import show
from reliability.models import AuditEntry, DeadLetter
from reliability.work import dead_letters
from reliability.work.dead_letters import Act, Moved, Seen

REVEALED = "reliability_revealed"
"""Session key: letters whose payload this person may see for a while, with the end of it."""
REVEAL = timedelta(minutes=10)


@page(needs="view_deadletter")
def detail(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Show everything known of one letter."""
    letter = letter_of(request, public_id)
    file = file_of(letter, now=request.now, redacted=not revealed(request, letter))
    return show(request, "dead_letters/detail.html", {"letter": letter, "file": file})


@act(needs="requeue_deadletter")
def requeue(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Requeue this letter; it starts in 10 s, which its page shows with an undo."""
    return _decide(
        request, public_id, lambda s, a: dead_letters.requeue([s], a), "Not requeued"
    )


@act(needs="requeue_deadletter")
def undo(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Take the requeue back while it has not started."""
    return _decide(request, public_id, dead_letters.undo_requeue, "Not undone")


@act(needs="discard_deadletter")
def discard(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Discard this letter, for a reason."""
    if not act_of(request).reason:
        raise NotUnderstood("A discard needs a reason.")
    return _decide(
        request, public_id, lambda s, a: dead_letters.discard([s], a), "Not discarded"
    )


@act(needs="discard_deadletter")
def resolve(request: OperatorRequest, public_id: str) -> HttpResponse:
    """End this letter as applied already or done by hand; the reason says how that is known."""
    if not act_of(request).reason:
        raise NotUnderstood("Say how it is known that the effect is in the world.")
    return _decide(
        request, public_id, lambda s, a: dead_letters.resolve([s], a), "Not resolved"
    )


@act(needs="discard_deadletter")
def restore(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Take the discard back."""
    return _decide(request, public_id, dead_letters.restore, "Not restored")


@act(needs="view_payload")
def reveal(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Show the whole payload to this person for ten minutes; the reason goes on record."""
    letter, asked = letter_of(request, public_id), act_of(request)
    if not asked.reason:
        raise NotUnderstood("Showing a payload needs a reason.")
    with transaction.atomic(using=sql.database().alias):
        AuditEntry.objects.record(
            request.tenant, actor=asked.actor, user_id=asked.user_id, act="reveal payload",
            about="dead letter", about_id=str(letter.public_id), reason=asked.reason,
        )  # fmt: skip
    until = (request.now + REVEAL).isoformat()
    kept = request.session.get(REVEALED, {})
    request.session[REVEALED] = kept | {str(letter.public_id): until}
    return redirect("console:dead_letter", letter.public_id)


def _decide(
    request: OperatorRequest,
    public_id: str,
    verb: Callable[[Seen, Act], Moved],
    refused: str,
) -> HttpResponse:
    letter = letter_of(request, public_id)
    moved = verb(Seen(letter.pk, version_seen(request)), act_of(request))
    for refusal in moved.refused:
        messages.error(request, f"{refused}: {refusal.why}. Nothing has changed.")
    return redirect("console:dead_letter", letter.public_id)


def letter_of(request: OperatorRequest, public_id: str) -> DeadLetter:
    """Return the tenant's letter with what its page needs."""
    letters = DeadLetter.objects.select_related("source", "job__key__source", "job__source")
    return owned(request, letters, public_id=public_id)


def revealed(request: OperatorRequest, letter: DeadLetter) -> bool:
    """Tell whether this person may see the payload whole right now."""
    if "view_payload" not in request.member.may:
        return False
    kept: dict[str, str] = request.session.get(REVEALED, {})
    until = kept.get(str(letter.public_id))
    return until is not None and datetime.fromisoformat(until) > request.now
