"""Edit and requeue: a letter's body as a form, and the act that keeps what was changed."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from reliability.console.access import OperatorRequest, act, page
from reliability.console.choices import act_of, version_seen
from reliability.console.editing import CannotEdit, Field, edited, fields
from reliability.console.filters import NotUnderstood
from reliability.console.pages import show
from reliability.console.views.dead_letter import letter_of, revealed
from reliability.models import Body, BodyEdit, DeadLetter
from reliability.work.dead_letters import Seen
from reliability.work.edit import Edit, edit_and_requeue, no_new_generation


@page(needs="requeue_deadletter")
def form(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Show each value of the body with whether it may be changed."""
    letter = letter_of(request, public_id)
    body = _body(letter)
    context = {
        "letter": letter,
        "body": body,
        "fields": _fields(request, letter, body),
        "edits": BodyEdit.objects.filter(body__key=letter.job.key_id).order_by("number"),
        "revealed": revealed(request, letter),
        "no_generation": no_new_generation(letter),
    }
    return show(request, "dead_letters/edit.html", context)


@act(needs="requeue_deadletter")
def requeue(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Keep the edit as a new version and requeue the letter on it."""
    letter, asked = letter_of(request, public_id), act_of(request)
    body = _body(letter)
    raw, changed = edited(bytes(body.raw), _fields(request, letter, body), request.POST.dict())
    edit = Edit(
        base_id=_base_seen(request),
        raw=raw,
        changed=changed,
        new_generation=request.POST.get("generation") == "new",
    )
    try:
        moved = edit_and_requeue(Seen(letter.pk, version_seen(request)), asked, edit)
    except ValueError as err:
        raise NotUnderstood(str(err)) from None
    for refusal in moved.refused:
        messages.error(request, f"Not requeued: {refusal.why}. Nothing has changed.")
    return redirect("console:dead_letter", letter.public_id)


def _body(letter: DeadLetter) -> Body:
    body = Body.objects.filter(key=letter.job.key_id, first=True).first()
    if body is None:
        raise NotUnderstood("No body is kept of this letter: there is nothing to edit.")
    return body


def _fields(request: OperatorRequest, letter: DeadLetter, body: Body) -> list[Field]:
    if letter.status != DeadLetter.Status.OPEN:
        raise NotUnderstood("Only an open letter can be edited and requeued.")
    try:
        return fields(letter, bytes(body.raw), revealed=revealed(request, letter))
    except CannotEdit as err:
        raise NotUnderstood(str(err)) from None


def _base_seen(request: OperatorRequest) -> int:
    try:
        return int(request.POST.get("body", ""))
    except ValueError:
        raise NotUnderstood("The form names no version of the body.") from None
