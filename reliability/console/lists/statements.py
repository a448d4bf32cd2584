"""The list of statements: what it may be asked for, and how a row looks."""

import django_filters
import django_tables2 as tables
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from reliability.console import parts
from reliability.console.filters import StrictFilter, sources_of
from reliability.console.tables import NUMERIC, WIDE, Lead, RowsTable
from reliability.models import Statement


class StatementFilter(StrictFilter):
    noun = "Statements"

    source = django_filters.ModelChoiceFilter(
        queryset=sources_of, to_field_name="slug", label="Source", empty_label="any"
    )
    day = django_filters.DateFilter(label="Day")

    class Meta:
        model = Statement
        fields: list[str] = []


class StatementTable(RowsTable):
    day = Lead()
    source = tables.Column(accessor="source__slug")
    revision = tables.Column(attrs=NUMERIC)
    artefact = tables.Column(accessor="artefact__name", verbose_name="File", attrs=WIDE)
    line_count = tables.Column(verbose_name="Lines", attrs=NUMERIC)
    created_at = tables.Column(verbose_name="Read", attrs=NUMERIC)

    def render_day(self, record: Statement) -> SafeString:
        href = reverse("console:statement", args=[record.public_id])
        return format_html(
            '<a href="{}">{}</a>', href, f"{record.day:%a} {record.day.day} {record.day:%b %Y}"
        )

    def render_line_count(self, value: int) -> str:
        return parts.number(value)

    def render_created_at(self, record: Statement) -> SafeString:
        return self.time(record.created_at, record.source.zone)
