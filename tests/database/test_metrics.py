"""`/metrics`: figures from the tables, totals to this machine, names to whoever shows the token."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.conf import LazySettings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from prometheus_client.parser import text_string_to_metric_families

from reliability.alerts.shipped import ship_rules
from reliability.console import metrics
from reliability.models import (
    Alert,
    AlertRule,
    Job,
    Receipt,
    Refusal,
    Report,
    Run,
    Source,
)
from tests.database.letters import a_source, a_tenant, accepted_keys, dead_letters, jobs_of

NOON = datetime(2026, 10, 2, 12, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)
TOKEN = "a-token-of-forty-characters-or-so-000001"
Samples = dict[tuple[str, ...], float]


@pytest.fixture
def clock() -> Iterator[time_machine.Traveller]:
    metrics.forget()
    with time_machine.travel(NOON, tick=False) as traveller:
        yield traveller
    metrics.forget()


@pytest.fixture
def source(db: None, clock: time_machine.Traveller) -> Source:
    return a_source(a_tenant())


def scraped(client: Client, **headers: str) -> Samples:
    """Return what Prometheus' own parser reads: name and values of its labels (by label name) to value."""
    answer = client.get("/metrics", headers=headers)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=")
    families = text_string_to_metric_families(answer.content.decode())
    return {
        (sample.name.removeprefix("reliability_"), *sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
    }


def a_busy_moment(source: Source) -> None:
    keys = accepted_keys(source, 6, at=NOON - 90 * SECOND)
    ready = jobs_of(keys[:4], Job.State.READY)
    Job.objects.filter(pk__in=[job.pk for job in ready]).update(queue="local")
    Job.objects.filter(pk=ready[0].pk).update(held="paused")
    Job.objects.filter(pk=ready[3].pk).update(
        state="running", lease_expires_at=NOON + 60 * SECOND
    )
    dead_letters(source, 3)
    for verdict, age in (
        ("accepted", 1),
        ("duplicate", 59),
        ("duplicate", 2),
        ("duplicate", 61),
    ):
        Receipt.objects.create(
            tenant=source.tenant,
            source=source,
            key=keys[0],
            verdict=verdict,
            at=NOON - age * SECOND,
        )
    Refusal.objects.create(
        tenant=source.tenant, source=source, reason="signature", hour=NOON, count=7, last_at=NOON,
        last_size_bytes=1, last_sha256=b"",
    )  # fmt: skip
    Run.objects.create(
        job="sweep", trigger="worker", started_at=NOON - 41 * SECOND,
        ended_at=NOON - 40 * SECOND, ok=True,
    )  # fmt: skip
    Run.objects.create(
        job="alerts", trigger="beat", started_at=NOON - 31 * SECOND,
        ended_at=NOON - 30 * SECOND, ok=False,
    )  # fmt: skip
    Report.objects.create(
        tenant=source.tenant, source=source, day=NOON.date() - timedelta(days=1), version=1,
        starts_at=NOON - timedelta(hours=36), ends_at=NOON - timedelta(hours=12),
        completeness="complete", inputs_sha256=bytes(32), created_at=NOON, created_by="beat",
    )  # fmt: skip
    ship_rules(source.tenant, [])
    Alert.objects.create(
        tenant=source.tenant, rule=AlertRule.objects.get(measure="conservation"), source=source,
        status="open", since=NOON, opened_at=NOON, value=2, peak=2,
    )  # fmt: skip


def test_loopback_is_told_totals_that_name_nobody(source: Source, client: Client) -> None:
    a_busy_moment(source)
    seen = scraped(client)
    expected: Samples = {
        ("receipts_last_minute", "accepted"): 1,
        ("receipts_last_minute", "duplicate"): 2,
        ("receipts_last_minute", "absorbed"): 0,
        ("refused_this_hour",): 7,
        ("jobs", "ready"): 2,
        ("jobs", "held"): 1,
        ("jobs", "running"): 1,
        ("dead_letters_open",): 3,
        ("oldest_ready_seconds", "local"): 90,
        ("oldest_ready_seconds", "outside"): 0,
        ("sweep_age_seconds",): 40,
        ("beat_age_seconds",): 31,
        ("alerts_open", "conservation"): 1,
        ("alerts_open", "open letters"): 0,
        ("conservation_difference",): 2,
        ("statement_age_seconds",): 43_200,
    }
    assert {name: seen.get(name) for name in expected} == expected
    said = client.get("/metrics").content
    assert b"acme" not in said.lower()
    assert b"stripe" not in said


def test_the_token_brings_the_names(
    source: Source, client: Client, settings: LazySettings
) -> None:
    settings.RELIABILITY_METRICS_TOKEN = TOKEN
    dead_letters(source, 3)
    dead_letters(a_source(a_tenant("globex"), "adyen-eu"), 2)
    seen = scraped(client, authorization=f"Bearer {TOKEN}")
    assert seen["dead_letters_open", "stripe-live", "acme"] == 3
    assert seen["dead_letters_open", "adyen-eu", "globex"] == 2
    assert ("dead_letters_open",) not in seen


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        ("", ""),
        ("", "Bearer "),
        (TOKEN, ""),
        (TOKEN, "Bearer wrong"),
        (TOKEN, f"Basic {TOKEN}"),
    ],
)
def test_a_stranger_finds_nothing(
    token: str, shown: str, source: Source, client: Client, settings: LazySettings
) -> None:
    settings.RELIABILITY_METRICS_TOKEN = token
    answer = client.get(
        "/metrics", headers={"authorization": shown}, REMOTE_ADDR="203.0.113.9"
    )
    assert answer.status_code == 404
    assert b"reliability_" not in answer.content


@pytest.mark.parametrize(
    "header", ["x-forwarded-for", "x-forwarded-proto", "forwarded", "via"]
)
def test_what_a_proxy_on_this_machine_passes_on_is_not_from_this_machine(
    header: str, source: Source, client: Client
) -> None:
    assert client.get("/metrics", headers={header: "1"}).status_code == 404


def test_the_token_is_good_from_anywhere(
    source: Source, client: Client, settings: LazySettings
) -> None:
    settings.RELIABILITY_METRICS_TOKEN = TOKEN
    headers = {"authorization": f"Bearer {TOKEN}", "x-forwarded-for": "203.0.113.9"}
    answer = client.get("/metrics", headers=headers, REMOTE_ADDR="203.0.113.9")
    assert answer.status_code == 200


def test_the_tables_are_asked_no_more_often_than_each_ten_seconds(
    source: Source, client: Client, clock: time_machine.Traveller
) -> None:
    dead_letters(source, 1)
    assert scraped(client)["dead_letters_open",] == 1
    dead_letters(source, 1)
    clock.shift(9 * SECOND)
    with CaptureQueriesContext(connection) as asked:
        assert scraped(client)["dead_letters_open",] == 1
    assert len(asked) == 0
    clock.shift(SECOND)
    assert scraped(client)["dead_letters_open",] == 2


def test_no_more_rows_of_a_state_are_looked_at_than_the_limit(
    source: Source, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "ROWS_MAX", 5)
    dead_letters(source, 9)
    assert scraped(client)["dead_letters_open",] == 5


def test_sources_beyond_the_named_ones_stand_under_other(
    source: Source, client: Client, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.RELIABILITY_METRICS_TOKEN = TOKEN
    monkeypatch.setattr(metrics, "SOURCES_MAX", 1)
    dead_letters(source, 1)
    for slug in ("b", "c"):
        dead_letters(a_source(source.tenant, slug), 2)
    seen = scraped(client, authorization=f"Bearer {TOKEN}")
    assert seen["dead_letters_open", "stripe-live", "acme"] == 1
    assert seen["dead_letters_open", "other", "other"] == 4
