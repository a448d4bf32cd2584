"""Causes and redrives as people see them: what is shown is what is acted on, once."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from reliability.conf import conf
from reliability.console.causes import causes
from reliability.models import AuditEntry, DeadLetter, Job, LetterGroup, Redrive
from reliability.work.redrive import advance
from tests.console import rows
from tests.database import world

pytestmark = pytest.mark.django_db

KIND = "stripe.charge.refunded"
PLAN = {"pace": "steady", "rate": "100", "stop_percent": "20", "stop_after": "10",
        "reason": "handler fixed"}  # fmt: skip


@pytest.fixture(autouse=True)
def kinds() -> Iterator[None]:
    with world.local(KIND, lambda event: None):
        yield


@pytest.fixture
def operator() -> Client:
    owner = rows.tenant()
    of = rows.source(owner)
    for n in range(3):
        rows.letter(of, amount_minor=1000 + n, currency="EUR", exponent=2)
    rows.letter(of, amount_minor=-250, currency="EUR", exponent=2)
    rows.letter(of, fingerprint="f2", outcome="unroutable", error_type="", message="")
    return rows.signed_in(rows.member(owner, "operator"))


def frozen(client: Client, asked: str = "cause=f1") -> Redrive:
    client.post("/redrives/freeze/", {"asked": asked})
    return Redrive.objects.latest("pk")


def path(redrive: Redrive, act: str = "") -> str:
    return f"/redrives/{redrive.public_id}/{act}"


def test_causes_show_count_money_per_currency_and_refunds_apart(operator: Client) -> None:
    shown = operator.get("/dead-letters/causes/").content.decode()
    assert "5 open letters have 2 causes" in shown
    assert "€30.03" in shown
    assert "refunds €2.50" in shown
    assert "Requeue 4…" in shown
    assert "no route for this kind" in shown


def test_the_seven_days_show_when_letters_came_and_forget_what_is_older() -> None:
    of = rows.source(rows.tenant())
    now = timezone.now()
    for age in (timedelta(minutes=5), timedelta(days=6, hours=23), timedelta(days=9)):
        rows.letter(of, buried_at=now - age)
    (row,) = causes(DeadLetter.objects.open(), now=now, sort="").rows
    assert row.bins == [1, *[0] * 12, 1]
    assert row.letters == 3
    assert row.first_at == now - timedelta(days=9)


def test_every_count_of_a_cause_leads_to_exactly_its_letters(operator: Client) -> None:
    shown = operator.get(f"/dead-letters/?source=stripe-live&kind={KIND}&cause=f1")
    assert shown.content.decode().count('name="letter"') == 4


def test_a_note_stays_with_its_cause_after_its_letters_are_requeued(operator: Client) -> None:
    said = {"source": "stripe-live", "kind": KIND, "cause": "f1", "owner": "N. Okafor",
            "note": "rolled back at 04:31", "ticket": "INC-7", "mute": "4h"}  # fmt: skip
    assert operator.post("/dead-letters/causes/note/", said).status_code == 302
    shown = operator.get("/dead-letters/causes/").content.decode()
    assert "N. Okafor" in shown
    assert "rolled back at 04:31 (INC-7)" in shown
    assert "muted" in shown
    assert AuditEntry.objects.get().act == "note on cause"
    DeadLetter.objects.update(status="requeued")
    assert LetterGroup.objects.get().owner == "N. Okafor"


def test_a_cause_that_came_back_says_so_and_can_be_filtered(operator: Client) -> None:
    first = DeadLetter.objects.filter(fingerprint="f1").earliest("pk")
    DeadLetter.objects.filter(pk=first.pk).update(round=2)
    assert "cameback" in operator.get("/dead-letters/causes/").content.decode()
    shown = operator.get("/dead-letters/causes/?back=1").content.decode()
    assert "1 open letter has 1 cause" in shown


def test_selecting_all_that_match_takes_two_steps_and_a_filter(operator: Client) -> None:
    page = operator.get("/dead-letters/?cause=f1").content.decode()
    assert "Select all 4 matching" in page
    second = operator.get("/dead-letters/?cause=f1&select=matching").content.decode()
    assert "All 4 matching are selected" in second
    assert "Requeue 4…" in second
    unfiltered = operator.get("/dead-letters/?select=matching").content.decode()
    assert "Nothing is selected" in unfiltered
    assert "/redrives/freeze/" not in unfiltered
    assert operator.get("/dead-letters/?select=everything").status_code == 400


@pytest.mark.parametrize("asked", ["", "after=2026-01-01_1", "statsu=open", "cause=nothing"])
def test_an_empty_misspelt_or_fruitless_filter_freezes_nothing(
    operator: Client, asked: str
) -> None:
    assert operator.post("/redrives/freeze/", {"asked": asked}).status_code == 400
    assert not Redrive.objects.exists()


def test_the_preview_shows_the_frozen_set_and_the_button_carries_verb_and_number(
    operator: Client,
) -> None:
    redrive = frozen(operator, "source=stripe-live")
    shown = operator.get(path(redrive)).content.decode()
    assert "5 letters match. 4 would run, 0 are already applied and 1 is left alone." in shown
    assert "Requeue 4</button>" in shown
    assert "cannot run" in shown
    assert "source=stripe-live" in shown
    assert not AuditEntry.objects.exists()


def test_a_letter_that_arrives_after_the_preview_is_told_and_not_included(
    operator: Client,
) -> None:
    redrive = frozen(operator)
    late = timezone.now() + timedelta(seconds=1)
    rows.letter(DeadLetter.objects.latest("pk").source, buried_at=late)
    assert "1 arrived since, not included" in operator.get(path(redrive)).content.decode()
    operator.post(path(redrive, "start/"), PLAN)
    advance(timezone.now() + timedelta(seconds=10))
    assert Job.objects.filter(state="ready").count() == 4


def test_the_overview_shows_how_far_a_redrive_has_come(operator: Client) -> None:
    assert "Redrives under way" not in operator.get("/").content.decode()
    redrive = frozen(operator)
    operator.post(path(redrive, "start/"), PLAN)
    advance(timezone.now() + timedelta(seconds=10))
    settled = Job.objects.filter(state="ready", round=2)
    settled.update(state="running", token=1, lease_expires_at=timezone.now())
    Job.objects.filter(state="running").update(state="done", lease_expires_at=None)
    shown = operator.get("/").content.decode()
    assert f'<a href="{path(redrive)}"><strong>R-{redrive.pk}</strong> requeue 4</a>' in shown
    assert "of 4 settled, 0 failed again." in shown


def test_the_audit_trail_leads_to_the_page_of_what_was_acted_on(operator: Client) -> None:
    redrive = frozen(operator)
    operator.post(path(redrive, "start/"), PLAN)
    shown = operator.get("/audit/").content.decode()
    assert f'<a href="{path(redrive)}" title="redrive {redrive.public_id}">' in shown
    assert f"redrive {str(redrive.public_id)[:8]}…" in shown


def test_two_clicks_on_start_make_one_redrive_and_one_audit_entry(operator: Client) -> None:
    redrive = frozen(operator)
    operator.post(path(redrive, "start/"), PLAN)
    answer = operator.post(path(redrive, "start/"), PLAN, follow=True)
    assert "was started already" in answer.content.decode()
    assert AuditEntry.objects.get().act == "start redrive"
    advance(timezone.now() + timedelta(seconds=10))
    assert set(Job.objects.filter(state="ready").values_list("round", flat=True)) == {2}


def test_a_start_without_a_reason_says_so_and_starts_nothing(operator: Client) -> None:
    redrive = frozen(operator)
    answer = operator.post(path(redrive, "start/"), PLAN | {"reason": " "}, follow=True)
    assert "Say why" in answer.content.decode()
    assert Redrive.objects.get().state == "frozen"


@pytest.mark.parametrize(
    "wrong", [{"rate": "fast"}, {"rate": "5000"}, {"pace": "flood"}, {"stop_percent": "0"}]
)
def test_a_pace_out_of_bounds_starts_nothing(operator: Client, wrong: dict[str, str]) -> None:
    redrive = frozen(operator)
    operator.post(path(redrive, "start/"), PLAN | wrong)
    assert Redrive.objects.get().state == "frozen"


def test_the_progress_counts_link_to_the_letters_behind_them(operator: Client) -> None:
    redrive = frozen(operator)
    operator.post(path(redrive, "start/"), PLAN)
    advance(timezone.now() + timedelta(seconds=10))
    shown = operator.get(path(redrive)).content.decode()
    assert "0 of 4 settled" in shown
    behind = operator.get(path(redrive, "letters/?outcome=running")).content.decode()
    assert behind.count("data-lead>") == 4
    assert operator.get(path(redrive, "letters/?outcome=lost")).status_code == 400


def test_a_poll_gets_the_progress_alone_until_it_is_over(operator: Client) -> None:
    redrive = frozen(operator)
    operator.post(path(redrive, "start/"), PLAN)
    polled = operator.get(path(redrive), headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in polled
    assert 'hx-trigger="every 2s"' in polled
    Redrive.objects.update(state="done", ended_at=timezone.now())
    over = operator.get(path(redrive), headers={"HX-Request": "true"}).content.decode()
    assert "hx-trigger" not in over


def test_pause_resume_and_cancel_say_who_may_and_what_was_refused(operator: Client) -> None:
    redrive = frozen(operator)
    operator.post(path(redrive, "start/"), PLAN)
    operator.post(path(redrive, "pause/"))
    assert Redrive.objects.get().state == "paused"
    again = operator.post(path(redrive, "pause/"), follow=True).content.decode()
    assert "is paused" in again
    operator.post(path(redrive, "resume/"))
    operator.post(path(redrive, "pace/"), {"rate": "2.5"})
    assert Redrive.objects.get().rate == 2.5
    operator.post(path(redrive, "cancel/"), {"reason": "wrong release"})
    assert Redrive.objects.get().state == "cancelled"
    assert DeadLetter.objects.open().count() == 5


def test_a_second_person_approves_what_is_above_the_limit(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(conf().__dict__, "redrive_alone_letters", 2)
    redrive = frozen(operator)
    assert "Second person" in operator.get(path(redrive)).content.decode()
    operator.post(path(redrive, "start/"), PLAN)
    assert Redrive.objects.get().state == "waiting"
    assert operator.post(path(redrive, "approve/")).status_code == 403
    second = rows.signed_in(rows.member(redrive.tenant, "approver"))
    assert "Approve 4" in second.get(path(redrive)).content.decode()
    second.post(path(redrive, "approve/"))
    assert Redrive.objects.get().state == "running"


def test_a_redrive_of_another_tenant_does_not_exist(operator: Client) -> None:
    redrive = frozen(operator)
    stranger = rows.signed_in(rows.member(rows.tenant("globex"), "admin"))
    for act in ("", "letters/"):
        assert stranger.get(path(redrive, act)).status_code == 404
    for act in ("start", "pause", "resume", "cancel", "pace", "approve", "review", "applied"):
        said = PLAN | {"reason": "why"}
        assert stranger.post(path(redrive, f"{act}/"), said).status_code == 404
    assert b"R-" not in stranger.get("/redrives/").content
    assert Redrive.objects.get().state == "frozen"


def test_a_viewer_sees_redrives_and_causes_but_no_button_that_acts(operator: Client) -> None:
    redrive = frozen(operator)
    viewer = rows.signed_in(rows.member(redrive.tenant, "viewer"))
    for address in ("/dead-letters/causes/", path(redrive), "/redrives/",
                    "/dead-letters/?cause=f1&select=matching"):  # fmt: skip
        shown = viewer.get(address).content.decode()
        assert "/redrives/freeze/" not in shown
        assert "/start/" not in shown
    assert viewer.post("/redrives/freeze/", {"asked": "cause=f1"}).status_code == 403


def test_pages_of_redrives_cost_the_same_queries_whatever_the_number(
    operator: Client, django_assert_max_num_queries: object
) -> None:
    redrive = frozen(operator)
    operator.post(path(redrive, "start/"), PLAN)
    for address in ("/dead-letters/causes/", path(redrive), path(redrive, "letters/")):
        with django_assert_max_num_queries(24):  # type: ignore[operator]
            operator.get(address)
