"""The audit trail: who did what, about what, and why."""

import django_filters
import django_tables2 as tables
from django.utils.safestring import SafeString

from reliability.console import parts
from reliability.console.filters import StrictFilter
from reliability.console.tables import NUMERIC, WIDE, Lead, RowsTable
from reliability.models import AuditEntry


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

    def render_about(self, record: AuditEntry) -> str:
        return f"{record.about} {record.about_id}"

    def render_reason(self, record: AuditEntry) -> str:
        return record.reason or "–"

    def render_number(self, value: int) -> str:
        return parts.number(value)

    def render_at(self, record: AuditEntry) -> SafeString:
        return self.time(record.at)
