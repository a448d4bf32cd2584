"""Overview, alerts, health and the error pages: each says what its rows say."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError
from django.test import Client
from django.utils import timezone

from reliability.alerts.shipped import ship_rules
from reliability.console.conservation import conservation
from reliability.models import (
    Alert,
    AuditEntry,
    Job,
    Run,
    Source,
    Stretch,
    Tenant,
)
from tests.console import rows

pytestmark = pytest.mark.django_db


def _text(client: Client, address: str, **query: Any) -> str:
    return client.get(address, query).content.decode()


# Overview


def test_conservation_counts_every_state_and_names_what_is_lost(
    acme: Tenant, stripe: Source, viewer: Client
) -> None:
    for state in ("done", "done", "ready", "dead", "discarded", "resolved"):
        rows.job(rows.key(stripe), state)
    rows.job(rows.key(stripe), "running", lease_expires_at=timezone.now())
    rows.key(stripe, absorbed=True, operation_class="charge", operation_reference="ch_1")
    rows.job(rows.key(rows.source(rows.tenant("globex"))), "done")
    counted = conservation(acme)
    assert (counted.accepted, counted.done, counted.missing) == (7, 2, 0)
    assert "Nothing lost" in _text(viewer, "/")
    Job.objects.filter(state="done").first().delete()  # type: ignore[union-attr]
    assert conservation(acme).missing == 1
    shown = _text(viewer, "/")
    assert "1 not accounted for" in shown
    assert "1 accepted events are not accounted for." in shown


def test_a_purged_key_still_counts_as_accepted_and_done(acme: Tenant, stripe: Source) -> None:
    rows.key(stripe, purged_at=timezone.now())
    counted = conservation(acme)
    assert (counted.accepted, counted.done, counted.missing) == (1, 1, 0)


def test_the_overview_says_when_older_events_were_counted(
    acme: Tenant, stripe: Source, viewer: Client
) -> None:
    assert "older ones in turn" not in _text(viewer, "/")
    Stretch.objects.create(
        tenant=acme, source=stripe, number=7, accepted=4, purged=0, ready=0, running=0, done=3,
        dead=1, discarded=0, resolved=0, counted_at=timezone.now() - timedelta(minutes=3),
    )  # fmt: skip
    told = _text(viewer, "/")
    assert "older ones in turn: the oldest of these counts was taken" in told
    assert "3 min ago" in told
    counted = conservation(acme)
    assert (counted.accepted, counted.done, counted.missing) == (4, 3, 0)


def test_the_overview_says_when_the_sweep_is_late(viewer: Client) -> None:
    assert "The sweep is late" in _text(viewer, "/")
    _swept(timedelta(minutes=1))
    assert "Claims and the sweep are healthy" in _text(viewer, "/")


def _swept(ago: timedelta) -> None:
    ended_at = timezone.now() - ago
    Run.objects.create(
        job="sweep", trigger="beat", ok=True, started_at=ended_at, ended_at=ended_at,
        facts={"rescued": 3, "rung": 1, "buried": 0},
    )  # fmt: skip


def test_an_incomplete_report_shows_no_figures(stripe: Source, viewer: Client) -> None:
    rows.report(stripe, "incomplete", counts={"matched": 5, "missing": 7})
    shown = _text(viewer, "/")
    assert "verdicts withheld" in shown
    assert "1 of 1 newest reports cannot be relied on" in shown


def test_an_unproven_or_forced_report_is_told_as_what_it_is(
    stripe: Source, acme: Tenant, viewer: Client
) -> None:
    rows.report(stripe, "unproven", counts={"matched": 5})
    two = {"force_asked_by": "mara", "forced_by": "ines", "force_reason": "their footer"}
    rows.report(rows.source(acme, "adyen-eu"), "forced", counts={"matched": 5}, **two)
    shown = _text(viewer, "/")
    assert "1 of 2 newest reports is unproven: no count or balance shows" in shown
    assert "1 of 2 newest reports is forced." in shown
    assert "cannot be relied on" not in shown


def test_an_open_alert_stands_on_top(acme: Tenant, stripe: Source, viewer: Client) -> None:
    rule = ship_rules(acme, ["a@acme.example"])[0]
    Alert.objects.create(
        tenant=acme, rule=rule, source=stripe, status="open", since=timezone.now(),
        opened_at=timezone.now(), value=40, peak=41,
    )  # fmt: skip
    assert "Open dead letters in stripe-live: 40" in _text(viewer, "/")
    alerts = _text(viewer, "/alerts/")
    assert "1 alert is open." in alerts
    assert "/dead-letters/?source=stripe-live" in alerts


def test_rules_show_what_they_measure_now(
    acme: Tenant, stripe: Source, viewer: Client
) -> None:
    ship_rules(acme, ["a@acme.example"])
    for _ in range(3):
        rows.letter(stripe)
    shown = _text(viewer, "/alerts/")
    assert "Nothing is open." in shown
    assert '<a data-rows="3" href="/dead-letters/?source=stripe-live">3</a>' in shown


# Health and errors


def test_health_follows_the_last_good_sweep(client: Client) -> None:
    assert client.get("/healthz").status_code == 503
    _swept(timedelta(minutes=5, seconds=50))
    assert client.get("/healthz").status_code == 200
    Run.objects.all().delete()
    _swept(timedelta(minutes=6, seconds=10))
    assert client.get("/healthz").status_code == 503
    assert client.get("/readyz").status_code == 200


def test_health_tells_strangers_nothing(client: Client) -> None:
    assert client.get("/healthz").content == b"not ok\n"
    assert client.get("/readyz").content == b"ok\n"


@pytest.mark.parametrize(("error", "status"), [(OperationalError, 503), (RuntimeError, 500)])
def test_a_failure_of_ours_has_a_page_that_needs_no_database(
    viewer: Client, monkeypatch: pytest.MonkeyPatch, error: type[Exception], status: int
) -> None:
    def fail(_request: object) -> None:
        raise error("secret detail")

    monkeypatch.setattr("reliability.console.access._admitted", lambda *_: fail(None))
    viewer.raise_request_exception = False
    answer = viewer.get("/jobs/")
    assert answer.status_code == status
    assert b"Reliability" in answer.content
    assert b"secret detail" not in answer.content
    assert "Content-Security-Policy" in answer.headers


def test_signing_in_and_out(acme: Tenant, client: Client) -> None:
    user = rows.member(acme, "viewer", "ida")
    user.set_password("correct horse battery")
    user.save()
    answer = client.post("/login/", {"username": "ida", "password": "wrong"})
    assert b"Please enter a correct username and password" in answer.content
    right = {"username": "ida", "password": "correct horse battery", "next": "/jobs/"}
    assert client.post("/login/", right).headers["Location"] == "/jobs/"
    assert client.post("/you/sign-out/").headers["Location"] == "/login/"
    assert client.get("/").status_code == 302


def test_a_chosen_appearance_is_kept(viewer: Client) -> None:
    viewer.post("/you/appearance/", {"theme": "dark"})
    assert '<html lang="en" data-theme="dark">' in _text(viewer, "/")
    assert viewer.post("/you/appearance/", {"theme": '"><script>'}).status_code == 404


def test_looking_writes_nothing_on_record(stripe: Source, viewer: Client) -> None:
    letter = rows.letter(stripe)
    for address in ("/", "/jobs/", "/dead-letters/", f"/dead-letters/{letter.public_id}/"):
        viewer.get(address)
    assert not AuditEntry.objects.exists()
