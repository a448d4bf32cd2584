"""Every page is reached, and every number on it is the number of rows behind its link."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from django.contrib.auth.models import AnonymousUser
from django.test import Client, RequestFactory
from django.urls import URLPattern, resolve, reverse
from django.urls.exceptions import NoReverseMatch

from reliability.console import access, urls
from reliability.models import DeadLetter, Report
from tests.console.busy_desk import busy_desk, kinds
from tests.console.crawl import Crawler

pytestmark = [pytest.mark.django_db, pytest.mark.timeout(400)]

NOT_CRAWLED = {
    "enter": "leads to another page in a tenant of one's choice",
    "healthz": "read by machines",
    "readyz": "read by machines",
    "metrics": "read by machines",
}
"""Pages that no walk reaches, and why."""
ASKED_FOR = {"cause": "which cause", "kind": "which kind"}
"""Pages that are reached by a link only: without its query they cannot say what they are about."""

TEMPLATES = Path(__file__).resolve().parents[2] / "templates" / "console"
MARKED = re.compile(r"\{% rows ([\w.|]+)")
WRITTEN = re.compile(
    r"\{\{ ([\w.]+(?:\|length)?)(?:\|default:0)?\|(?:number|plural:\"[^\"]*\") \}\}"
)
UNLINKED = {
    "the total of the list on the same page, which its pager marks": {
        "total", "picked|length", "filter.payloads.read",
    },
    "counted again in a table of the same page, and linked there": {
        "acted|length", "dry.applied", "dry.left", "dry.total.letters", "dry.will_run",
        "causes.letters", "causes.rows|length", "open|length", "live|length", "open_now",
        "progress.many.failed", "progress.many.pending", "progress.many.running",
        "progress.settled", "progress.total", "plan.asked|length", "plan.recovered|length",
        "file.brought|length", "changed|length",
        "changes|length", "silences", "row.missing", "paused", "count",
    },
    "frozen in a report or a file, whose rows are in its exports": {
        "age.entries", "group.count", "report.counts.in_transit", "report.counts.matched",
        "row.agree", "step.items", "statement.line_count", "statement.quarantined|length",
        "found.lines", "found.opened", "n", "one.lines",
    },
    "not a count of rows: a mark, a size, a position, a rate or a moment of the past": {
        "alert.rule.emails|length", "alert.rule.high", "alert.value", "rule.high", "rule.low",
        "source.high", "source.low", "chart.high.1", "value", "bar.day.came", "bar.day.left",
        "bar.day.open", "chart.now.day.open", "file.payload.size_bytes", "file.size_bytes",
        "file.verdict.line.position", "heard.answer.size_bytes", "one.concurrency_max", "plain",
        "full", "ended", "limit",
    },
    "counted on the page that the same line leads to": {
        "alert.others", "one.failed", "one.settled", "one.total",
    },
    "counted from states that no list asks for": {
        "newer", "progress.standing.retrying", "sum.missing",
    },
}  # fmt: skip
"""Numbers that stand in templates without a link to their rows, by the reason."""


@pytest.fixture
def desk() -> Iterator[Client]:
    with kinds():
        yield busy_desk()


def starts() -> Iterator[str]:
    """Yield the address of every route that needs nothing to be named."""
    for name in sorted(names() - set(ASKED_FOR)):
        try:
            yield reverse(f"console:{name}")
        except NoReverseMatch:
            continue


def names() -> set[str]:
    return {str(one.name) for one in urls.urlpatterns if isinstance(one, URLPattern)}


def names_of_pages() -> set[str]:
    """Return the names of the routes that answer GET; an act's view answers it with 405."""
    request = RequestFactory().get("/")
    request.user = AnonymousUser()
    routes = [one for one in urls.urlpatterns if isinstance(one, URLPattern)]
    given = {"public_id": "", "tenant": "", "where": ""}
    return {
        str(one.name)
        for one in routes
        if one.callback(request, **_wanted(one, given)).status_code != 405
    }


def _wanted(one: URLPattern, given: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in given.items() if f":{name}>" in str(one.pattern)}


def crawled(client: Client) -> Crawler:
    @cache  # nothing moves here, so a page looked at twice is the same page
    def get(path: str) -> tuple[int, str, str]:
        answer = client.get(path)
        content = b"" if answer.streaming else answer.content
        return (
            answer.status_code,
            answer.headers.get("Content-Type", ""),
            content.decode("utf-8", "replace"),
        )

    crawler = Crawler(get, faces_max=1)
    crawler.walk(["/", *starts(), *opened_by_hand()])
    return crawler


def opened_by_hand() -> Iterator[str]:
    """Yield pages whose link stands on some objects' pages only, each with one that has it."""
    letter = DeadLetter.objects.open().order_by("pk")[0]
    for name in ("evidence", "edit"):
        yield reverse(f"console:{name}", args=[letter.public_id])
    yield reverse("console:report_changes", args=[Report.objects.order_by("pk")[0].public_id])


def test_every_number_is_the_number_of_rows_behind_it_and_every_page_is_reached(
    desk: Client,
) -> None:
    found = crawled(desk).found

    assert found.wrong == []
    assert found.numbers > 60
    bad = {
        path: status for path, status in found.pages.items() if status not in {200, 302, 405}
    }
    assert bad == {}
    reached = {
        resolve(path.partition("?")[0]).url_name
        for path, status in found.pages.items()
        if status in {200, 302}
    }
    assert names_of_pages() - set(NOT_CRAWLED) - reached == set()


def test_the_pages_that_are_not_crawled_exist() -> None:
    assert set(NOT_CRAWLED) | set(ASKED_FOR) <= names()
    assert len(list(access.routed(urls.urlpatterns))) == len(urls.urlpatterns)


def test_no_template_writes_a_number_without_its_rows_or_a_reason() -> None:
    excused = {number for numbers in UNLINKED.values() for number in numbers}
    written, unlinked = set(), set()
    for path in (*TEMPLATES.rglob("*.html"), *TEMPLATES.rglob("*.svg")):
        text = path.read_text()
        marked = set(MARKED.findall(text))
        numbers = set(WRITTEN.findall(text))
        written |= numbers
        unlinked |= {f"{path.name}: {one}" for one in numbers - marked - excused}
    assert unlinked == set()
    assert excused - written == set()
