"""Open letters by cause, and the note people keep of each cause."""

from datetime import timedelta
from typing import Any

import django_filters
from django import forms
from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect

from reliability.console import risk, saved_views
from reliability.console.access import OperatorRequest, act, for_tenant, page
from reliability.console.causes import SORTS, causes
from reliability.console.choices import act_of
from reliability.console.filters import NotUnderstood, StrictFilter, sources_of
from reliability.console.pages import show
from reliability.models import DeadLetter, LetterGroup
from reliability.work.causes import Cause, Note, write_note

MUTES = {"": None, "4h": timedelta(hours=4), "1d": timedelta(days=1), "7d": timedelta(days=7)}
MUTE_WORDS = [
    ("", "not muted"),
    ("4h", "for 4 hours"),
    ("1d", "for a day"),
    ("7d", "for 7 days"),
]
SORT_WORDS = [
    ("", "money at risk"), ("count", "count"), ("last", "last seen"), ("first", "oldest"),
]  # fmt: skip


class CauseFilter(StrictFilter):
    noun = "Causes"

    source = django_filters.ModelChoiceFilter(
        queryset=sources_of, to_field_name="slug", label="Source", empty_label="any"
    )
    outcome = django_filters.ChoiceFilter(
        choices=DeadLetter.Outcome.choices, label="Outcome", empty_label="any"
    )
    kind = django_filters.CharFilter(label="Kind", max_length=255)
    back = django_filters.ChoiceFilter(
        choices=[("1", "came back after a requeue")], label="Came back", empty_label="or not",
        method="by_return",
    )  # fmt: skip
    sort = django_filters.ChoiceFilter(
        choices=[word for word in SORT_WORDS if word[0]], label="Sort by", method="by_nothing",
        empty_label="money at risk",
    )  # fmt: skip

    class Meta:
        model = DeadLetter
        fields: list[str] = []

    def by_return(self, rows: Any, _: str, __: str) -> Any:
        return rows.filter(round__gt=1)

    def by_nothing(self, rows: Any, _: str, __: str) -> Any:
        """Sorting narrows nothing."""
        return rows


class NoteForm(forms.Form):
    """What is known of a cause; texts are kept as written."""

    owner = forms.CharField(max_length=120, required=False)
    note = forms.CharField(max_length=2_000, required=False)
    ticket = forms.CharField(max_length=200, required=False)
    mute = forms.ChoiceField(choices=MUTE_WORDS, required=False)


@page(needs="view_deadletter")
def index(request: OperatorRequest) -> HttpResponse:
    """List the causes of open letters, most money first."""
    letters = for_tenant(request, DeadLetter.objects.open())
    asked = CauseFilter(request, letters)
    found = asked.found()
    sort = str(asked.asked.get("sort", ""))
    shown = causes(found, now=request.now, sort=sort if sort in SORTS else "")
    context = {
        "filter": asked,
        "causes": shown,
        "ever": bool(shown.rows) or for_tenant(request, DeadLetter.objects.all()).exists(),
        "money": risk.money_told(risk.at_risk(found)),
        "saved": saved_views.shown(request),
    }
    return show(request, "causes/index.html", context)


@page(needs="view_deadletter")
def cause(request: OperatorRequest) -> HttpResponse:
    """Show what is known of one cause, with the form to change it."""
    of = _cause(request, request.GET)
    known = LetterGroup.objects.filter(
        source=of.source, kind=of.kind, fingerprint=of.fingerprint
    ).first()
    letters = for_tenant(request, DeadLetter.objects.open()).filter(
        source=of.source, kind=of.kind, fingerprint=of.fingerprint
    )
    total = risk.at_risk(letters)
    context = {
        "cause": of, "known": known, "mutes": MUTE_WORDS, "total": total.letters,
        "money": risk.money_told(total),
    }  # fmt: skip
    return show(request, "causes/note.html", context)


@act(needs="requeue_deadletter")
def note(request: OperatorRequest) -> HttpResponse:
    """Replace what is known of one cause."""
    of, form = _cause(request, request.POST), NoteForm(request.POST)
    for name, errors in form.errors.items():
        raise NotUnderstood(f"“{name}”: {errors[0]}")
    said = form.cleaned_data
    mute = MUTES[said["mute"]]
    written = Note(
        owner=said["owner"], text=said["note"], ticket=said["ticket"],
        muted_until=request.now + mute if mute else None,
    )  # fmt: skip
    write_note(of, written, act_of(request))
    messages.success(request, "Noted. It stays with the cause when its letters are requeued.")
    return redirect("console:causes")


def _cause(request: OperatorRequest, said: QueryDict) -> Cause:
    source = sources_of(request).filter(slug=said.get("source", "")).first()
    if source is None or not said.get("cause"):
        raise NotUnderstood("A cause is named by source, kind and cause.")
    return Cause(source, str(said.get("kind", "")), str(said["cause"]))
