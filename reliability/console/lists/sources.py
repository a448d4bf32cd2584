"""The list of sources: what it may be asked for, and how a row looks."""

import django_filters
import django_tables2 as tables
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from reliability.console import parts
from reliability.console.filters import StrictFilter
from reliability.console.tables import NUMERIC, Lead, RowsTable
from reliability.console.traffic import Figure, Traffic
from reliability.models import Source

PAGE_SIZE = 20


class SourceFilter(StrictFilter):
    noun = "Sources"

    mode = django_filters.ChoiceFilter(
        choices=Source.Mode.choices, label="Mode", empty_label="any"
    )
    paused = django_filters.ChoiceFilter(
        field_name="paused_at",
        lookup_expr="isnull",
        choices=[("False", "paused"), ("True", "open")],
        label="State",
        empty_label="any",
    )

    class Meta:
        model = Source
        fields: list[str] = []


class SourceTable(RowsTable):
    slug = Lead(accessor="source__slug", verbose_name="Source")
    scheme = tables.Column(accessor="source__scheme")
    mode = tables.Column(accessor="source__mode")
    state = tables.Column(accessor="source__pk", verbose_name="State")
    accepted = tables.Column(verbose_name="Accepted", attrs=NUMERIC)
    duplicates = tables.Column(verbose_name="Duplicates", attrs=NUMERIC)
    refused = tables.Column(verbose_name="Refused", attrs=NUMERIC)
    last_at = tables.Column(verbose_name="Last event", attrs=NUMERIC, empty_values=())

    def render_slug(self, record: Traffic) -> SafeString:
        href = reverse("console:source", args=[record.source.public_id])
        return format_html('<a href="{}">{}</a>', href, record.source.slug)

    def render_mode(self, record: Traffic) -> str:
        return record.source.get_mode_display().lower()

    def render_state(self, record: Traffic) -> SafeString:
        if record.source.paused_at:
            return parts.badge("paused")
        return parts.badge("good", "open")

    def render_accepted(self, value: Figure) -> SafeString:
        return _link(value)

    def render_duplicates(self, value: Figure) -> SafeString:
        return _link(value)

    def render_refused(self, value: Figure) -> SafeString:
        return _link(value)

    def render_last_at(self, record: Traffic) -> SafeString:
        last = self.time(record.last_at, record.source.zone)
        return format_html('<a href="{}">{}</a>', record.all_href, last)


def _link(figure: Figure) -> SafeString:
    return format_html('<a href="{}">{}</a>', figure.href, parts.number(figure.count))
