"""What a list says when it has no row: nothing yet, nothing matches, all done, or not loaded."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from reliability import console
from reliability.console.access import IDLE_MAX, LAST_USED
from reliability.models import AuditEntry, Job, Run, Tenant
from tests.console import rows

pytestmark = pytest.mark.django_db

CONSOLE = Path(console.__file__).parent
NOTHING_YET = {
    "/dead-letters/": "None yet.",
    "/dead-letters/causes/": "None yet.",
    "/jobs/": "No job yet.",
    "/deliveries/": "No delivery yet.",
    "/deliveries/refused/": "No refusal yet.",
    "/runs/": "No run yet.",
    "/redrives/": "No redrive yet.",
    "/audit/": "No act yet.",
    "/statements/": "No statement yet.",
    "/discrepancies/": "No discrepancy yet.",
}
NOTHING_MATCHES = {
    "/dead-letters/?kind=x": "No letter matches.",
    "/dead-letters/causes/?kind=x": "No cause matches.",
    "/jobs/?kind=x": "No job matches.",
    "/deliveries/?kind=x": "No delivery matches.",
    "/deliveries/refused/?reason=x": "No refusal matches.",
    "/runs/?job=prune": "No run matches.",
    "/redrives/?by=x": "No redrive matches.",
    "/audit/?actor=x": "No act matches.",
    "/statements/?day=2026-03-01": "No statement matches.",
    "/discrepancies/?reference=x": "No discrepancy matches.",
}


@pytest.fixture
def operator(acme: Tenant) -> Client:
    return rows.signed_in(rows.member(acme, "operator", "n.okafor"))


def _shown(client: Client, address: str) -> str:
    return client.get(address).content.decode()


def test_a_list_without_a_row_says_whether_there_was_ever_one_or_none_matches(
    operator: Client,
) -> None:
    for address, said in (NOTHING_YET | NOTHING_MATCHES).items():
        assert said in _shown(operator, address), address


def test_a_list_whose_rows_are_all_decided_on_says_that_all_is_done(
    acme: Tenant, operator: Client
) -> None:
    stripe = rows.source(acme)
    rows.letter(stripe, status="discarded")
    rows.discrepancy(stripe, status="resolved", closed_at=timezone.now())
    for address in ("/dead-letters/", "/dead-letters/causes/", "/discrepancies/"):
        assert "All done" in _shown(operator, address), address


@pytest.mark.parametrize("address", ["/jobs/", "/deliveries/", "/audit/", "/redrives/"])
def test_a_list_that_cannot_be_read_is_told_apart_from_an_empty_one(
    operator: Client, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slowly(*_: Any) -> None:
        list(Run.objects.raw("SELECT 1 AS id, pg_sleep(1)"))

    monkeypatch.setattr("reliability.console.searching.SEARCH_SECONDS_MAX", 0.05)
    monkeypatch.setattr("reliability.console.pages.paged", slowly)
    answer = operator.get(address)
    assert answer.status_code == 503
    assert b"Failed to load." in answer.content


@pytest.mark.parametrize("address", ["/dead-letters/", "/jobs/", "/deliveries/"])
def test_a_time_is_relative_and_tells_exact_utc_and_the_sources_zone_on_hover(
    acme: Tenant, operator: Client, address: str
) -> None:
    rows.letter(rows.source(acme, zone="Europe/Amsterdam"))
    times = re.findall(
        r'<time datetime="[^"]*Z" title="([^"]*)">([^<]*)<', _shown(operator, address)
    )
    told = [title for title, words in times if "min" in words or " h" in words]
    assert told
    assert all(" UTC · " in title and title.endswith("Europe/Amsterdam") for title in told)


def test_the_list_refreshes_itself_on_its_first_page_and_never_under_a_selection(
    acme: Tenant, operator: Client
) -> None:
    rows.letter(rows.source(acme))
    assert 'hx-trigger="every 30s"' in _shown(operator, "/dead-letters/?source=stripe-live")
    assert 'data-refresh="Refreshes every 30 s"' in _shown(operator, "/dead-letters/")
    chosen = _shown(operator, "/dead-letters/?source=stripe-live&select=matching")
    assert "every 30s" not in chosen
    assert "data-refresh" not in chosen


def test_a_refresh_after_the_session_ended_leads_to_the_sign_in_and_empties_no_list(
    acme: Tenant, operator: Client
) -> None:
    rows.letter(rows.source(acme))
    operator.get("/dead-letters/")
    session = operator.session
    session[LAST_USED] = (timezone.now() - IDLE_MAX - timedelta(minutes=1)).isoformat()
    session.save()
    answer = operator.get("/dead-letters/?kind=x", headers={"HX-Request": "true"})
    assert answer.headers["HX-Redirect"] == "/login/?next=/dead-letters/%3Fkind%3Dx"
    assert answer.content == b""


COUNTS_WITHIN_A_LIMIT = {"figures.py", "letter_export.py", "saved_views.py"}


def test_no_page_counts_rows_without_a_limit() -> None:
    counting = {
        path.name for path in CONSOLE.rglob("*.py") if ".count()" in path.read_text("utf-8")
    }
    assert counting == COUNTS_WITHIN_A_LIMIT


# Two operators, two clicks, one effect.


def test_two_operators_who_confirm_one_preview_make_one_requeue_and_one_entry(
    acme: Tenant, operator: Client
) -> None:
    letter = rows.letter(rows.source(acme))
    ticked = {"letter": f"{letter.public_id}:1", "reason": "fixed"}
    other = rows.signed_in(rows.member(acme, "operator", "m.keller"))
    for client in (operator, other):
        shown = client.post("/dead-letters/requeue/preview/", ticked).content.decode()
        assert "1 would run" in shown
    other.post("/dead-letters/requeue/", ticked)
    late = operator.post("/dead-letters/requeue/", ticked, follow=True).content.decode()
    assert "m.keller was first" in late
    assert "Requeued 1." not in late
    assert Job.objects.get().round == 2
    assert AuditEntry.objects.count() == 1


def test_a_page_gone_back_to_cannot_discard_what_was_requeued(
    acme: Tenant, operator: Client
) -> None:
    letter = rows.letter(rows.source(acme))
    ticked = {"letter": f"{letter.public_id}:1", "reason": "fixed"}
    operator.post("/dead-letters/requeue/", ticked)
    late = operator.post("/dead-letters/discard/", ticked, follow=True).content.decode()
    assert "Not discarded" in late
    assert Job.objects.get().state == "ready"
    assert AuditEntry.objects.count() == 1


@pytest.mark.parametrize(
    "address",
    [
        "/dead-letters/requeue/", "/dead-letters/discard/", "/dead-letters/requeue/preview/",
        "/dead-letters/discard/preview/", "/redrives/freeze/",
    ],
)  # fmt: skip
def test_a_viewers_bulk_act_is_refused_and_its_list_has_no_button_for_it(
    acme: Tenant, address: str
) -> None:
    letter = rows.letter(rows.source(acme))
    viewer = rows.signed_in(rows.member(acme, "viewer"))
    data = {"letter": f"{letter.public_id}:1", "reason": "x", "asked": "source=stripe-live"}
    assert viewer.post(address, data).status_code == 403
    for shown in ("/dead-letters/", "/dead-letters/?source=stripe-live&select=matching"):
        assert address not in _shown(viewer, shown)
    assert not AuditEntry.objects.exists()
