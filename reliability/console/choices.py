"""What an operator chose, as the page showed it: letters with the version seen, a reason."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass

from django.http import Http404, QueryDict

from reliability.conf import conf
from reliability.console.access import OperatorRequest, for_tenant
from reliability.console.filters import NotUnderstood
from reliability.console.lists.letter_filter import DeadLetterFilter
from reliability.models import DeadLetter
from reliability.work.dead_letters import Act, Moved, Seen

REASON_MAX = 1000


@dataclass(frozen=True)
class Chosen:
    """One letter as it is now, and the version its page showed."""

    letter: DeadLetter
    version: int

    @property
    def seen(self) -> Seen:
        return Seen(self.letter.pk, self.version)

    @property
    def value(self) -> str:
        """What the form sends back."""
        return f"{self.letter.public_id}:{self.version}"

    @property
    def fresh(self) -> bool:
        """Whether nothing has happened to the letter since."""
        return (
            self.letter.status == DeadLetter.Status.OPEN
            and self.letter.job.version == self.version
        )


def chosen(request: OperatorRequest) -> list[Chosen]:
    """Read the ticked letters. One that is not the tenant's refuses the whole choice with 404.

    Raises NotUnderstood for none, for more than ``conf().selection_max`` and for garbage.
    """
    asked = dict(read_seen(value) for value in request.POST.getlist("letter"))
    if not asked:
        raise NotUnderstood("No letter was ticked.")
    if len(asked) > conf().selection_max:
        raise NotUnderstood(f"At most {conf().selection_max} letters at a time.")
    letters = DeadLetter.objects.select_related("job__key", "source")
    found = (
        for_tenant(request, letters).filter(public_id__in=asked).order_by("-buried_at", "-pk")
    )
    picked = [Chosen(letter, asked[letter.public_id]) for letter in found]
    if len(picked) != len(asked):
        raise Http404("A letter of this choice does not exist.")
    return picked


def version_seen(request: OperatorRequest) -> int:
    """Read the version a letter's own page showed."""
    try:
        return int(request.POST.get("version", ""))
    except ValueError:
        raise NotUnderstood("The form names no version of the letter.") from None


def act_of(request: OperatorRequest) -> Act:
    """Return who acts, and why."""
    return Act(
        tenant=request.tenant,
        actor=request.user.get_username(),
        user_id=request.user.pk,
        reason=request.POST.get("reason", "").strip()[:REASON_MAX],
    )


def reasoned(request: OperatorRequest, else_say: str) -> None:
    """Refuse an act whose form gives no reason. Raises NotUnderstood."""
    if not act_of(request).reason:
        raise NotUnderstood(else_say)


def way_back(request: OperatorRequest) -> str:
    """Return the list's query string to come back to; a garbled one leads to the whole list."""
    query = QueryDict(request.POST.get("back", "")).urlencode()
    try:
        DeadLetterFilter(request, DeadLetter.objects.none(), query).found()
    except NotUnderstood:
        return ""
    return query


def refusals(moved: Moved, picked: list[Chosen]) -> Iterator[str]:
    """Say of each letter that was refused who was first."""
    numbers = {one.letter.pk for one in picked}
    for refusal in moved.refused:
        if refusal.letter_id in numbers:
            yield f"DL-{refusal.letter_id}: {refusal.why}."


def read_seen(value: str) -> tuple[uuid.UUID, int]:
    """Read what a form says of one row: which, and the version shown. Raises NotUnderstood."""
    public_id, _, version = value.partition(":")
    try:
        return uuid.UUID(public_id), int(version)
    except ValueError:
        raise NotUnderstood("What was ticked cannot be read.") from None
