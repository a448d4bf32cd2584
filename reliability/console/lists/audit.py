"""The audit trail: who did what, about what, and why."""

import uuid

import django_filters
import django_tables2 as tables
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from reliability.console import parts
from reliability.console.filters import StrictFilter
from reliability.console.tables import NUMERIC, WIDE, Lead, RowsTable
from reliability.models import AuditEntry

PAGES = {
    "dead letter": "dead_letter",
    "discrepancy": "discrepancy",
    "redrive": "redrive",
    "report": "report",
}
"""The page of each noun whose entries carry its public id."""


class AuditFilter(StrictFilter):
    noun = "Audit entries"

    actor = django_filters.CharFilter(label="Who", max_length=150)
    act = django_filters.CharFilter(label="Act", max_length=80)
    about = django_filters.CharFilter(label="About", max_length=80)
    about_id = django_filters.CharFilter(label="Number", max_length=255)
    since = django_filters.IsoDateTimeFilter(field_name="at", lookup_expr="gte", label="Since")

    class Meta:
        model = AuditEntry
        fields: list[str] = []


class AuditTable(RowsTable):
    act = Lead()
    actor = tables.Column(verbose_name="Who")
    about = tables.Column()
    reason = tables.Column(attrs=WIDE, empty_values=())
    number = tables.Column(attrs=NUMERIC)
    at = tables.Column(verbose_name="When", attrs=NUMERIC)

    def render_about(self, record: AuditEntry) -> str | SafeString:
        """Name what was acted on; what has a page of its own is a link to it."""
        text = f"{record.about} {record.about_id}"
        if record.about not in PAGES or not _is_id(record.about_id):
            return text
        there = reverse(f"console:{PAGES[record.about]}", args=[record.about_id])
        return format_html('<a href="{}" title="{}">{} {}…</a>', there, text, record.about,
            record.about_id[:8])  # fmt: skip

    def render_reason(self, record: AuditEntry) -> str:
        return record.reason or "–"

    def render_number(self, value: int) -> str:
        return parts.number(value)

    def render_at(self, record: AuditEntry) -> SafeString:
        return self.time(record.at)


def _is_id(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True
