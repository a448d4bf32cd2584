"""The list of deliveries: what each request did to each key it carried."""

import django_filters
import django_tables2 as tables
from django.utils.html import format_html
from django.utils.safestring import SafeString

from reliability.console import parts
from reliability.console.filters import StrictFilter, sources_of
from reliability.console.tables import NUMERIC, WIDE, Lead, RowsTable, trace_link
from reliability.models import Receipt, Refusal


class DeliveryFilter(StrictFilter):
    noun = "Deliveries"

    source = django_filters.ModelChoiceFilter(
        queryset=sources_of, to_field_name="slug", label="Source", empty_label="any"
    )
    verdict = django_filters.ChoiceFilter(
        choices=Receipt.Verdict.choices, label="Result", empty_label="any"
    )
    kind = django_filters.CharFilter(field_name="key__kind", label="Kind", max_length=255)
    since = django_filters.IsoDateTimeFilter(
        field_name="at", lookup_expr="gte", label="Received since"
    )
    replays = django_filters.ChoiceFilter(
        field_name="suspected_replay",
        choices=[("True", "suspected"), ("False", "not suspected")],
        label="Replay",
        empty_label="either",
    )

    class Meta:
        model = Receipt
        fields: list[str] = []


class DeliveryTable(RowsTable):
    key = Lead(accessor="key__key", verbose_name="Key")
    kind = tables.Column(accessor="key__kind", attrs=WIDE)
    source = tables.Column()
    verdict = tables.Column(verbose_name="Result")
    answer = tables.Column(accessor="delivery__answer", verbose_name="Answered", attrs=NUMERIC)
    size = tables.Column(accessor="delivery__size_bytes", verbose_name="Bytes", attrs=NUMERIC)
    at = tables.Column(verbose_name="Received", attrs=NUMERIC)

    def render_key(self, value: str) -> SafeString:
        return trace_link(value)

    def render_verdict(self, record: Receipt) -> SafeString:
        verdict = parts.badge(record.verdict, record.get_verdict_display().lower())
        if not record.suspected_replay:
            return verdict
        return format_html("{} {}", verdict, parts.badge("warn", "suspected replay"))

    def render_size(self, value: int) -> str:
        return parts.number(value)

    def render_at(self, record: Receipt) -> SafeString:
        return self.time(record.at, record.source.zone)


class RefusalFilter(StrictFilter):
    noun = "Refusals"

    source = django_filters.ModelChoiceFilter(
        queryset=sources_of, to_field_name="slug", label="Source", empty_label="any"
    )
    reason = django_filters.CharFilter(label="Reason", max_length=120)
    since = django_filters.IsoDateTimeFilter(
        field_name="last_at", lookup_expr="gte", label="Seen since"
    )

    class Meta:
        model = Refusal
        fields: list[str] = []


class RefusalTable(RowsTable):
    reason = Lead()
    source = tables.Column()
    hour = tables.Column(attrs=NUMERIC)
    count = tables.Column(verbose_name="Requests", attrs=NUMERIC)
    last_peer = tables.Column(verbose_name="Last from")
    last_size_bytes = tables.Column(verbose_name="Bytes", attrs=NUMERIC)
    last_at = tables.Column(verbose_name="Last", attrs=NUMERIC)

    def render_hour(self, record: Refusal) -> SafeString:
        return parts.when(record.hour, parts.clock(record.hour, self.now), record.source.zone)

    def render_count(self, value: int) -> str:
        return parts.number(value)

    def render_last_size_bytes(self, value: int) -> str:
        return parts.number(value)

    def render_last_at(self, record: Refusal) -> SafeString:
        return self.time(record.last_at, record.source.zone)
