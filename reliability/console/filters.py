"""What a list may be asked for: a filter refuses what it does not understand."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import django_filters
from django.db.models import QuerySet
from django.http import HttpRequest, QueryDict

from reliability.models import Destination, Source

PAGING = frozenset({"after", "select"})
"""What says which rows of a list are shown or chosen, and narrows nothing."""


class NotUnderstood(ValueError):
    """A parameter is unknown, repeated or unreadable: nothing is shown and nothing is done."""


@dataclass(frozen=True)
class Chip:
    """One active filter, with the query string that leaves it out."""

    label: str
    value: str
    without: str


def sources_of(request: HttpRequest | None) -> "QuerySet[Source]":
    """Return the sources a member may filter by: their tenant's."""
    tenant = getattr(request, "tenant", None)
    return Source.objects.filter(tenant=tenant).order_by("slug")


def destinations_of(request: HttpRequest | None) -> "QuerySet[Destination]":
    """Return the destinations a member may filter by: their tenant's."""
    tenant = getattr(request, "tenant", None)
    return Destination.objects.filter(tenant=tenant).order_by("slug")


class StrictFilter(django_filters.FilterSet):
    """django-filter leaves out a parameter it cannot read, which widens the list.

    Over a list that is a nuisance, under a bulk action an accident: here it is ``NotUnderstood``,
    which the guard answers with a page and 400.
    """

    noun = "Rows"
    initial: dict[str, str] = {}
    """Values in force where the query string names none."""
    wide: dict[str, frozenset[str]] = {}
    """Values that choose a whole list: they narrow nothing, so a bulk act on them is refused."""
    further: frozenset[str] = frozenset()
    """Fields that stand behind "More filters"."""

    def __init__(
        self, request: HttpRequest, queryset: "QuerySet[Any]", query: str | None = None
    ):
        self.asked = request.GET if query is None else QueryDict(query)
        data = self.asked.copy()
        for name, value in self.initial.items():
            data.setdefault(name, value)
        super().__init__(data, queryset=queryset, request=request)

    def found(self) -> "QuerySet[Any]":
        """Return the rows asked for. Raises NotUnderstood."""
        for name in self.asked:
            if name not in self.filters and name not in PAGING:
                raise NotUnderstood(f"Filter not understood: “{name}”.")
            if len(self.asked.getlist(name)) > 1:
                raise NotUnderstood(f"Filter “{name}” is given more than once.")
        for name, errors in self.form.errors.items():
            raise NotUnderstood(f"Filter “{name}” cannot be {self.data[name]!r}: {errors[0]}")
        for name, value in self.asked.items():
            if value and name in self.filters and self.form.cleaned_data[name] in ("", None):
                raise NotUnderstood(f"Filter “{name}” cannot be blank.")
        if why := self.refused(self.form.cleaned_data):
            raise NotUnderstood(why)
        found: QuerySet[Any] = self.qs
        return found

    def refused(self, _: dict[str, Any]) -> str:
        """Say what is wrong with values that are each readable; empty for nothing."""
        return ""

    @property
    def narrows(self) -> bool:
        """Whether the query string asks for less than everything."""
        return any(
            value and value not in self.wide.get(name, ())
            for name, value in self.asked.items()
            if name not in PAGING
        )

    @property
    def fields(self) -> list[Any]:
        """The visible fields that always stand on the page."""
        return [f for f in self.form.visible_fields() if f.name not in self.further]

    @property
    def more_fields(self) -> list[Any]:
        """The visible fields behind "More filters"."""
        return [f for f in self.form.visible_fields() if f.name in self.further]

    @property
    def more_asked(self) -> bool:
        """Whether one of the further fields is in use, so that it must be seen."""
        return any(value for name, value in self.asked.items() if name in self.further)

    @property
    def kept(self) -> str:
        """The query string of the filters alone, to come back to after an action."""
        kept = self.asked.copy()
        for name in PAGING:
            kept.pop(name, None)
        return kept.urlencode()

    def chips(self) -> Iterator[Chip]:
        """Yield what narrows the list, each with a way to take it away."""
        for name, value in self.asked.items():
            if name in PAGING or not value:
                continue
            rest = self.asked.copy()
            for dropped in {name} | PAGING:
                rest.pop(dropped, None)
            yield Chip(
                str(self.form.fields[name].label),
                self._words(name, str(value)),
                rest.urlencode(),
            )

    def _words(self, name: str, value: str) -> str:
        choices = dict(getattr(self.form.fields[name], "choices", None) or {})
        return str(choices.get(value, value))
