"""The health page says of every part what its rows say, and remembers the last proof."""

import re
import tomllib
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from celery import current_app
from django.conf import settings
from django.db import OperationalError
from django.test import Client
from django.utils import timezone

from reliability import dispatch
from reliability.conf import conf
from reliability.console import health
from reliability.management.proving import Proof
from reliability.management.recording import record_proof
from reliability.management.trial import Terms
from reliability.models import Attempt, Job, Run, Tenant
from reliability.proof.verdict import Check
from reliability.sweep.prune import prune
from tests.console import rows

pytestmark = pytest.mark.django_db


def _plain(client: Client, address: str = "/health/") -> str:
    text = client.get(address).content.decode()
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", text))


def _ran(job: str, ago: timedelta, *, trigger: str = "command", ok: bool = True) -> None:
    at = timezone.now() - ago
    Run.objects.create(job=job, trigger=trigger, started_at=at, ended_at=at, ok=ok, facts={})


MINUTE = timedelta(minutes=1)


def test_the_promise_of_a_rescue_is_computed_from_the_paces(viewer: Client) -> None:
    _ran("sweep", MINUTE)
    # 300 s + 120 s + 15 s.
    words = "starts again within 7 min 15 s: 5 min lease, 120 s until the sweep, 15 s to pick it up."
    assert words in _plain(viewer)


def test_another_pace_promises_another_time(
    viewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "RELIABILITY", {"lease": 10 * MINUTE})
    conf.cache_clear()
    _ran("sweep", MINUTE)
    try:
        assert "starts again within 12 min 15 s: 10 min lease" in _plain(viewer)
    finally:
        monkeypatch.undo()
        conf.cache_clear()


@pytest.mark.parametrize(
    ("ago", "word"),
    [(MINUTE, "Sweep on time"), (4 * MINUTE, "Sweep late"), (7 * MINUTE, "Sweep late")],
)
def test_a_sweep_is_on_time_or_late(viewer: Client, ago: timedelta, word: str) -> None:
    _ran("sweep", ago)
    assert word in _plain(viewer)


def test_a_sweep_that_failed_is_no_pass(viewer: Client) -> None:
    _ran("sweep", MINUTE, ok=False)
    assert "No good pass yet. A crashed worker’s job is not rescued now." in _plain(viewer)


def test_beat_runs_is_silent_or_never_ran(viewer: Client) -> None:
    _ran("sweep", MINUTE)
    assert "Beat never" in _plain(viewer)
    _ran("alerts", 7 * MINUTE, trigger="beat")
    assert "Beat silent It last ran alerts, 7 min ago." in _plain(viewer)
    _ran("alerts", MINUTE, trigger="beat")
    assert "Beat runs It last ran alerts, 1 min ago." in _plain(viewer)


def test_workers_are_seen_not_needed_or_away(viewer: Client, acme: Tenant) -> None:
    assert "Workers not needed" in _plain(viewer)
    stripe = rows.source(acme)
    job = rows.job(rows.key(stripe))
    shown = _plain(viewer)
    assert "Workers away" in shown
    # Two hours and no worker.
    assert "It has waited 2 h; a lost bell explains 3 min." in shown
    Attempt.objects.create(
        tenant=acme, job=job, round=1, number=1, token=1, outcome="failed", worker="pay-07",
        started_at=timezone.now(), ended_at=timezone.now(),
    )  # fmt: skip
    assert "Workers seen 1 ended a start within 15 min: pay-07." in _plain(viewer)


def test_a_held_job_is_not_the_oldest_ready_one(viewer: Client, acme: Tenant) -> None:
    rows.job(rows.key(rows.source(acme)), held=Job.Hold.PAUSED)
    assert "Oldest ready job none" in _plain(viewer)


def test_what_is_lost_breaks_conservation(viewer: Client, acme: Tenant) -> None:
    stripe = rows.source(acme)
    rows.job(rows.key(stripe), "done")
    assert "Conservation holds 1 accepted" in _plain(viewer)
    rows.key(stripe)
    shown = _plain(viewer)
    assert "Conservation broken 1 of 2 accepted are not accounted for." in shown
    assert "Somebody is needed:" in shown


def test_an_old_snapshot_is_named_with_its_age(
    viewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Old snapshots none" in _plain(viewer)
    monkeypatch.setattr(health, "old_snapshot", lambda *_: {None: 90})
    assert "A session has held a snapshot for 90 s" in _plain(viewer)


def test_a_broker_that_is_down_is_said_and_costs_only_latency(
    viewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert dispatch.answers()
    assert "Broker answers" in _plain(viewer)
    closed = current_app.connection_for_write("redis://127.0.0.1:1/0")
    monkeypatch.setattr(current_app, "connection_for_write", lambda: closed)
    assert not dispatch.answers()
    assert "Broker silent It takes no bells. Nothing is lost" in _plain(viewer)


def test_the_database_says_its_version(viewer: Client) -> None:
    assert re.search(
        r"Database answers PostgreSQL \d+\S* answered in \d+ ms\.", _plain(viewer)
    )


def test_the_overview_leads_to_the_health_page(viewer: Client) -> None:
    assert '<a href="/health/">Health</a>' in viewer.get("/").content.decode()


# The last proof


def _proof(*, ok: bool = True, key_check: bool = True) -> Proof:
    replay: dict[str, Any] = {
        "effects": 97, "effect_names": 97, "operations": 120, "unknown_resolved": 0, "unknown_requeued": 0,
    }  # fmt: skip
    kill = {"hit": [{"where": "before the effect"}], "pids": [1]}
    return Proof(
        terms=Terms(seed=42, events=120, replays=2, kills=1, key_check=key_check),
        replays=[replay],
        kills=[kill],
        checks=[[Check("each operation took effect once", 97, 97 if ok else 98)]],
    )


def _version_in_the_project_file() -> str:
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    return str(tomllib.loads(text)["project"]["version"])


def test_a_proof_is_kept_and_shown_with_seed_figures_and_verdict(viewer: Client) -> None:
    assert "Last proof none" in _plain(viewer)
    assert record_proof(_proof(), timezone.now()) == "recorded for the health page"
    shown = _plain(viewer)
    assert "Last proof PASS" in shown
    assert "seed 42, 120 events × 2, 1 kills, 1 hit a running job" in shown
    assert "97 effects of 97 operations outside, 1 checks, 0 failed." in shown
    assert f"version {_version_in_the_project_file()}" in shown
    assert "prove" in _plain(viewer, "/runs/?job=prove")


def test_a_proof_that_failed_is_kept_like_one_that_passed(viewer: Client) -> None:
    record_proof(_proof(), timezone.now() - MINUTE)
    record_proof(_proof(ok=False), timezone.now())
    shown = _plain(viewer)
    assert "Last proof FAIL" in shown
    assert "1 failed. each operation took effect once" in shown


def test_the_control_that_has_to_fail_is_not_kept() -> None:
    said = record_proof(_proof(ok=False, key_check=False), timezone.now())
    assert said.startswith("not recorded: without the key check")
    assert Run.objects.count() == 0


def test_without_a_database_the_proof_stands_and_one_line_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def gone(**_: Any) -> None:
        raise OperationalError

    monkeypatch.setattr(Run.objects, "create", gone)
    said = "not recorded: the configured database does not answer or is not migrated"
    assert record_proof(_proof(), timezone.now()) == said
    monkeypatch.setattr(settings, "NOT_RUNNING", True)
    said = "not recorded: no database is configured or running"
    assert record_proof(_proof(), timezone.now()) == said


def test_the_prune_leaves_proofs() -> None:
    _ran("prove", timedelta(days=400))
    _ran("sweep", timedelta(days=400))
    prune("command")
    assert set(Run.objects.values_list("job", flat=True)) == {"prove", "prune"}
