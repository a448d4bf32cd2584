"""Policies, limits and the herd: what the pages say is what was worked out by hand."""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from reliability import handlers
from reliability.handlers import DedupeWindow, Event, LocalTransaction, ProviderHeader
from reliability.models import AuditEntry, Job, KindPause, Source, Tenant
from reliability.policy import Backoff, RunOnce
from tests.console import rows

pytestmark = pytest.mark.django_db

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)


def _nothing(event: Event) -> None:
    return None


KINDS: dict[str, dict[str, Any]] = {
    "five.retries": {
        "sink": ProviderHeader(window=24 * HOUR),
        "policy": Backoff(first=SECOND, cap=HOUR, attempts=6),
        "limit": timedelta(seconds=30),
    },
    "nine.attempts": {
        "sink": LocalTransaction(),
        "policy": Backoff(first=SECOND / 2, cap=30 * SECOND, attempts=9),
    },
    "marked.before": {
        "sink": DedupeWindow(window=24 * HOUR, record="before"),
        "policy": Backoff(first=SECOND, cap=HOUR, attempts=3),
    },
    "marked.after": {
        "sink": DedupeWindow(window=24 * HOUR, record="after"),
        "policy": Backoff(first=SECOND, cap=HOUR, attempts=3),
    },
    "once.only": {"policy": RunOnce()},
    "too.short": {
        "sink": ProviderHeader(window=HOUR),
        "policy": Backoff(first=SECOND, cap=HOUR, attempts=6),
    },
}


@pytest.fixture(autouse=True)
def _kinds() -> Iterator[None]:
    for name, declared in KINDS.items():
        handlers.handler(name, **declared)(_nothing)
    yield
    for name in KINDS:
        handlers.unregister(name)


def _plain(client: Client, address: str, **query: str) -> str:
    """Return a page's words, without its markup."""
    text = client.get(address, query).content.decode()
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", text))


def _kind(client: Client, name: str) -> str:
    return _plain(client, "/policies/kind/", kind=name)


def test_five_retries_from_one_second_end_after_31_seconds(viewer: Client) -> None:
    shown = _kind(viewer, "five.retries")
    table = "1 1 s 1 s 2 2 s 3 s 3 4 s 7 s 4 8 s 15 s 5 16 s 31 s Waits alone 31 s"
    assert table in shown


def test_nine_attempts_from_half_a_second_wait_91_and_a_half_seconds(viewer: Client) -> None:
    assert "8 30 s 91.5 s Waits alone 91.5 s" in _kind(viewer, "nine.attempts")


def test_the_worst_case_stands_with_its_four_terms_against_the_window(viewer: Client) -> None:
    # 6 x 30 s; 10 x (300 + 120) s; (6 + 10) pickups of 60 + 120 s; in all 7291 s of a day.
    shown = _kind(viewer, "five.retries")
    assert "Attempts × limit 6 × 30 s 3 min" in shown
    assert "Crashes × (lease + sweep) 10 × (5 min + 120 s) 1 h 10 min" in shown
    assert "Pickups 16 × 3 min 48 min" in shown
    assert "Worst case S 2 h 1 min of 1 d" in shown
    assert "first sent + 21 h 36 min (window − 10 %)" in shown


def test_a_window_shorter_than_the_worst_case_is_named_with_both_figures(
    viewer: Client,
) -> None:
    # 31 s + 6 x 180 s + 4200 s + 2880 s = 8191 s.
    assert "2 h 16 min exceeds 1 h" in _kind(viewer, "too.short")
    listed = _plain(viewer, "/policies/")
    assert "1 of" in listed
    assert "kinds would be refused at start: too.short." in listed


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("marked.before", "The mark commits first, a crash is never repeated. Risk: may be missing."),
        ("marked.after", "The mark commits after the answer, a crash repeats with the same key. Risk: may repeat."),
        ("nine.attempts", "The handler’s database writes and DONE commit together."),
        ("five.retries", "The key goes straight through in Idempotency-Key; the provider forgets it after 1 d."),
        ("once.only", "it runs once; a failure or a crash is a letter, a person decides."),
    ],
)  # fmt: skip
def test_a_sink_and_its_risk_are_said_in_their_words(
    viewer: Client, kind: str, words: str
) -> None:
    assert words.lower() in _kind(viewer, kind).lower()
    assert words.lower() in _plain(viewer, "/policies/").lower()


def test_the_counts_of_a_kind_are_links_to_exactly_their_rows(
    viewer: Client, stripe: Source
) -> None:
    for state, more in (("ready", {}), ("ready", {"held": "paused"}), ("done", {})):
        rows.job(rows.key(stripe, kind="five.retries"), state, **more)
    rows.letter(stripe, kind="five.retries", claimed={"kind": "five.retries"})
    rows.job(rows.key(rows.source(rows.tenant("globex")), kind="five.retries"))
    page = viewer.get("/policies/kind/", {"kind": "five.retries"}).content.decode()
    found = re.findall(
        r'<a[^>]* href="([^"]*kind=five\.retries[^"]*)">(?:<svg.*?</svg>)?(\d+) ', page
    )
    counts = {href.replace("&amp;", "&"): int(count) for href, count in found}
    assert sorted(counts.values()) == [0, 1, 1, 2]
    for href, count in counts.items():
        listed = viewer.get(href).content.decode()
        assert listed.count('<th scope="row" data-lead>') == count, href


def test_a_kind_of_the_tenants_rows_that_is_not_known_here_is_shown_as_such(
    viewer: Client, stripe: Source
) -> None:
    rows.job(rows.key(stripe, kind="elsewhere"), held=Job.Hold.KIND_UNKNOWN)
    assert "elsewhere not known here" in _plain(viewer, "/policies/")
    assert "No handler of this name is known" in _kind(viewer, "elsewhere")


def test_a_kind_nobody_ever_had_does_not_exist(viewer: Client) -> None:
    rows.job(rows.key(rows.source(rows.tenant("globex")), kind="theirs"), "done")
    assert viewer.get("/policies/kind/", {"kind": "theirs"}).status_code == 404
    assert viewer.get("/policies/kind/", {"kin": "theirs"}).status_code == 400


# The herd and the limits


def test_the_herd_is_drawn_and_told_honestly(viewer: Client) -> None:
    shown = _plain(viewer, "/policies/")
    # Expected in the fullest window: 200 x (1/2 + 3/16 + 1/64 + ...), so some 141.
    assert "Without jitter: 5 windows of 200" in shown
    found = re.search(r"With full jitter: about (\d+) windows , at most about (\d+)", shown)
    assert found is not None
    assert 48 < int(found[1]) < 60
    assert 130 < int(found[2]) < 152
    assert f"Jitter lowers the peak by about 29 %; what it buys is {found[1]} windows" in shown


def test_the_herd_has_a_table_with_every_return_in_it(viewer: Client) -> None:
    page = viewer.get("/policies/").content.decode()
    cells = re.findall(r"<tr><th scope=\"row\">\d to \d s</th>(.*?)</tr>", page)
    numbers = [[int(n) for n in re.findall(r"\d+", cell)] for cell in cells]
    # Back after 0.2, 0.6, 1.4, 3.0 and 6.2 s.
    assert [plain for plain, _ in numbers] == [400, 200, 0, 200, 0, 0, 200]
    assert sum(full for _, full in numbers) == 1000


def test_the_chart_has_no_style_of_its_own(viewer: Client) -> None:
    page = viewer.get("/policies/").content.decode()
    assert "style=" not in page
    assert page.count('<rect class="c-dead"') == 5


def test_the_limits_page_shows_what_is_shipped_and_what_was_changed(viewer: Client) -> None:
    shown = _plain(viewer, "/policies/limits/")
    assert "lease 5 min 5 min" in shown
    assert "job_limit 3 min 3 min" in shown
    assert "sweep_every 120 s 120 s" in shown
    assert "body_bytes_max 1 MiB 1 MiB" in shown
    assert "error_bytes_max 2 000 bytes" in shown
    # The tests themselves refuse sockets.
    assert "refuse_sockets changed yes no" in shown
    assert "five.retries 6 31 s 3 min 1 h 10 min 48 min 2 h 1 min 1 d" in shown


# Pause and resume


def _pause(client: Client, verb: str = "pause", **more: str) -> int:
    sent = {"kind": "five.retries", "reason": "the provider is down"} | more
    return client.post(f"/policies/{verb}/", sent).status_code


def test_an_operator_pauses_a_kind_with_a_reason_and_resumes_it(
    operator: Client, stripe: Source
) -> None:
    job = rows.job(rows.key(stripe, kind="five.retries"))
    assert _pause(operator) == 302
    job.refresh_from_db()
    assert job.held == "paused"
    assert "paused" in _kind(operator, "five.retries")
    assert "by operator-acme: the provider is down" in _plain(operator, "/policies/")
    assert _pause(operator, "resume") == 302
    job.refresh_from_db()
    assert job.held == ""
    told = AuditEntry.objects.values_list("act", "about_id", "reason", "actor")
    assert list(told) == [
        ("pause kind", "five.retries", "the provider is down", "operator-acme"),
        ("unpause kind", "five.retries", "the provider is down", "operator-acme"),
    ]


def test_pausing_twice_is_one_pause_and_one_entry(operator: Client) -> None:
    _pause(operator)
    _pause(operator)
    assert (KindPause.objects.count(), AuditEntry.objects.count()) == (1, 1)


def test_a_pause_without_a_reason_is_refused(operator: Client) -> None:
    assert _pause(operator, reason=" ") == 400
    assert KindPause.objects.count() == 0


def test_a_kind_nobody_knows_cannot_be_paused(operator: Client) -> None:
    assert _pause(operator, kind="nobody.knows") == 404
    assert KindPause.objects.count() == 0


def test_a_viewer_sees_no_button_and_cannot_pause(viewer: Client) -> None:
    assert (
        "/policies/pause/"
        not in viewer.get("/policies/kind/?kind=five.retries").content.decode()
    )
    assert _pause(viewer) == 403
    assert KindPause.objects.count() == 0


def test_a_pause_of_another_tenant_is_not_seen(operator: Client, viewer: Client) -> None:
    globex = rows.tenant("globex")
    theirs = rows.signed_in(rows.member(globex, "operator"))
    _pause(theirs)
    assert "paused" not in _kind(viewer, "five.retries").replace("not paused", "")
    assert Job.objects.count() == 0


def test_the_overview_says_what_is_paused(operator: Client) -> None:
    assert "Paused by a person" not in _plain(operator, "/")
    _pause(operator)
    assert "five.retries" in _plain(operator, "/")
    assert "Paused by a person" in _plain(operator, "/")


def test_the_overview_names_a_paused_source_too(viewer: Client, acme: Tenant) -> None:
    stopped = rows.source(acme, "adyen-eu", paused_at=timezone.now())
    page = viewer.get("/").content.decode()
    assert (
        f'source <a href="/sources/{stopped.public_id}/"><strong>adyen-eu</strong></a>' in page
    )
