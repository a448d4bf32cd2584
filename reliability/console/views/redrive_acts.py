"""What people do with redrives: freeze a set, start it, and steer it while it runs."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from reliability.conf import conf
from reliability.console.access import OperatorRequest, act, for_tenant, owned
from reliability.console.choices import REASON_MAX, act_of
from reliability.console.filters import NotUnderstood
from reliability.console.lists.letter_filter import DeadLetterFilter
from reliability.console.parts import number
from reliability.errors import RedriveRefused
from reliability.models import DeadLetter, Redrive
from reliability.work import redrive as work
from reliability.work.dead_letters import Act
from reliability.work.redrive.pace import RATE_MIN


class PlanForm(forms.Form):
    """What is decided on the preview. Out of bounds is refused, nothing is corrected."""

    pace = forms.ChoiceField(choices=Redrive.Pace.choices)
    rate = forms.FloatField(min_value=RATE_MIN)
    stop_percent = forms.IntegerField(min_value=1, max_value=100)
    stop_after = forms.IntegerField(min_value=1, max_value=100_000)
    ticket = forms.CharField(max_length=200, required=False)
    include = forms.BooleanField(required=False)
    break_glass = forms.CharField(max_length=REASON_MAX, required=False)

    def plan(self, mail_to: str) -> work.Plan:
        """Return the plan. Raises NotUnderstood, naming the field."""
        for name, errors in self.errors.items():
            raise NotUnderstood(f"“{name.replace('_', ' ')}”: {errors[0]}")
        said = self.cleaned_data
        pace = work.Pace(
            how=said["pace"], rate=said["rate"], stop_percent=said["stop_percent"],
            stop_after=said["stop_after"],
        )  # fmt: skip
        return work.Plan(
            pace=pace, include_cannot_tell=said["include"], ticket=said["ticket"],
            mail_to=mail_to, break_glass=said["break_glass"],
        )  # fmt: skip


@act(needs="requeue_deadletter")
def freeze(request: OperatorRequest) -> HttpResponse:
    """Freeze the letters a list shows, and lead to their dry run; changes no letter."""
    query = request.POST.get("asked", "")
    asked = DeadLetterFilter(request, for_tenant(request, DeadLetter.objects.all()), query)
    found = asked.found()
    if not asked.narrows:
        raise NotUnderstood("An empty filter would mean every letter: narrow the list first.")
    try:
        redrive = work.freeze(found, act_of(request), asked=asked.kept, now=request.now)
    except RedriveRefused as refused:
        raise NotUnderstood(str(refused)) from None
    return redirect("console:redrive", redrive.public_id)


@act(needs="requeue_deadletter")
def start(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Start what the dry run showed. A second click leads to the running redrive."""
    redrive = _redrive(request, public_id)
    plan = PlanForm(request.POST).plan(getattr(request.user, "email", ""))
    if redrive.state != Redrive.State.FROZEN:
        messages.info(request, f"{redrive} was started already, by {redrive.actor}.")
        return redirect("console:redrive", public_id)
    return _steer(request, redrive, lambda one, by: work.start(one, by, plan))


@act(needs="requeue_deadletter")
def pause(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Hold the rest back until somebody resumes."""
    return _steer(request, _redrive(request, public_id), work.pause)


@act(needs="requeue_deadletter")
def resume(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Let it go on."""
    return _steer(request, _redrive(request, public_id), work.resume)


@act(needs="requeue_deadletter")
def cancel(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Leave the rest as dead letters, for a reason."""
    return _steer(request, _redrive(request, public_id), work.cancel)


@act(needs="requeue_deadletter")
def pace(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Change the letters per second."""
    redrive = _redrive(request, public_id)
    field = forms.FloatField(min_value=RATE_MIN, max_value=conf().redrive_rate_max)
    try:
        rate: float = field.clean(request.POST.get("rate", ""))
    except forms.ValidationError as err:
        raise NotUnderstood(f"Letters per second: {err.messages[0]}") from None
    return _steer(request, redrive, lambda one, by: work.change_rate(one, by, rate=rate))


@act(needs="approve_redrive")
def approve(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Let somebody else's redrive start."""
    return _steer(request, _redrive(request, public_id), work.approve)


@act(needs="approve_redrive")
def review(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Put on record that a second person looked at broken glass."""
    return _steer(request, _redrive(request, public_id), work.review)


@act(needs="discard_deadletter")
def close_applied(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Resolve the letters found to be already applied, with their evidence."""
    redrive = _redrive(request, public_id)
    try:
        closed = work.close_applied(redrive, act_of(request))
    except RedriveRefused as refused:
        raise NotUnderstood(str(refused)) from None
    messages.success(request, f"Closed {number(closed)} as already applied.")
    return redirect("console:redrive", public_id)


def _steer(
    request: OperatorRequest, redrive: Redrive, verb: Callable[[Redrive, Act], Any]
) -> HttpResponse:
    try:
        verb(redrive, act_of(request))
    except RedriveRefused as refused:
        messages.error(request, str(refused))
    return redirect("console:redrive", redrive.public_id)


def _redrive(request: OperatorRequest, public_id: str) -> Redrive:
    return owned(request, Redrive.objects.all(), public_id=public_id)
