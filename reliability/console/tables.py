"""Lists as django-tables2 tables; the template turns them into cards on a narrow screen."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

import django_tables2 as tables
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from reliability.console import parts

NUMERIC = {"td": {"class": "num"}, "th": {"class": "num"}}
WIDE = {"td": {"data-wide": ""}}


class Lead(tables.Column):
    """The column that names the row: its header cell, and its card's title."""

    lead = True


class Pick(tables.Column):
    """The box that selects a row for a bulk action."""

    pick = True


class RowsTable(tables.Table):
    """Rows of one page. Paging is by key and filters are strict, so nothing sorts by header."""

    refresh = ""
    """How often the page asks for the table anew, as htmx writes it; empty for never."""

    def __init__(self, rows: Any, *, now: datetime, caption: str, **options: Any) -> None:
        self.now = now
        self.caption = caption
        super().__init__(rows, orderable=False, template_name="console/_table.html", **options)

    def lines(self) -> Iterator[SafeString]:
        """Yield each row as markup: told cell by cell in a template, they are most of a page's cost."""
        tags = [(column.name, *_tags(column)) for column in self.columns]
        for row in self.paginated_rows:
            cells = format_html_join(
                "", "{}{}{}", ((first, row.get_cell(name), last) for name, first, last in tags)
            )
            yield format_html("<tr {}>{}</tr>", row.attrs.as_html(), cells)

    def time(self, at: datetime | None, zone: str = "UTC") -> SafeString:
        """Return how long ago, with the exact time on hover."""
        return parts.when(at, parts.ago(at, self.now), zone)


def _tags(bound: tables.columns.BoundColumn) -> tuple[SafeString, SafeString]:
    """Return what opens and closes a column's cells: a box, the row's name, or a value."""
    if getattr(bound.column, "pick", False):
        return format_html('<td class="{}">', "pickcell"), format_html("</{}>", "td")
    if getattr(bound.column, "lead", False):
        return format_html('<th scope="{}" data-lead>', "row"), format_html("</{}>", "th")
    told = format_html('<td data-label="{}" {}>', bound.header, bound.attrs["td"].as_html())
    return told, format_html("</{}>", "td")


def trace_link(find: str, words: str = "", *, plain: bool = False) -> SafeString:
    """Return the link that answers what happened to a key, an id or a reference."""
    return format_html(
        '<a{} href="{}?{}">{}</a>',
        "" if plain else mark_safe(' class="key"'),
        reverse("console:trace"),
        urlencode({"find": find}),
        words or find,
    )
