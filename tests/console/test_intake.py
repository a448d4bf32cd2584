"""How a source takes events in: set by an admin, refused where its provider cannot have it."""

from html import unescape
from typing import Any

import pytest
from django.test import Client

from reliability.claim import door
from reliability.claim.presets import PRESETS
from reliability.handlers import Event
from reliability.models import AuditEntry, DeadLetter, Job, Receipt, Source, Tenant
from tests.console import rows
from tests.database import senders, world

pytestmark = pytest.mark.django_db

NEVER = ["adyen", "github", "paypal", "shopify"]
BODY = b'{"action": "opened"}'


@pytest.fixture
def admin(acme: Tenant) -> Client:
    door.forget()
    return rows.signed_in(rows.member(acme, "admin", "ada"))


def ask(client: Client, source: Source, **more: str) -> str:
    asked = {"answer": "at once", "hold_replays": "no", "reason": "FIN-208"} | more
    answer = client.post(f"/sources/{source.public_id}/intake/", asked, follow=True)
    source.refresh_from_db()
    return unescape(answer.content.decode())


def test_an_admin_says_how_events_are_taken_in_and_it_is_on_record(admin: Client) -> None:
    source = senders.source("stripe")
    page = ask(admin, source, answer="after work", hold_replays="yes")
    assert (source.answer, source.hold_replays) == ("after work", True)
    assert "once its events are worked" in page
    assert "waits for a person" in page
    [entry] = AuditEntry.objects.all()
    assert (entry.act, entry.about_id, entry.actor, entry.reason) == (
        "set intake", "stripe", "ada", "FIN-208",
    )  # fmt: skip
    assert entry.facts == {"answer": "after work", "hold_replays": True}
    ask(admin, source, answer="after work", hold_replays="yes")
    assert AuditEntry.objects.count() == 1


@pytest.mark.parametrize("preset", NEVER)
def test_a_provider_that_blocks_or_never_resends_is_not_offered_to_wait_and_is_refused(
    preset: str, admin: Client
) -> None:
    source = senders.source(preset)
    page = unescape(admin.get(f"/sources/{source.public_id}/").content.decode())
    assert 'value="after work"' not in page
    assert PRESETS[preset].no_answer_after_work in page
    refused = ask(admin, source, answer="after work", hold_replays="yes")
    assert "cannot answer after work" in refused
    assert (source.answer, source.hold_replays) == ("at once", False)
    assert AuditEntry.objects.count() == 0


@pytest.mark.parametrize(
    "wrong", [{"reason": " "}, {"answer": "never"}, {"hold_replays": "maybe"}, {"answer": ""}]
)
def test_without_a_reason_or_in_words_nobody_offered_nothing_changes(
    wrong: dict[str, str], admin: Client
) -> None:
    source = senders.source("stripe")
    ask(admin, source, **({"answer": "after work", "hold_replays": "yes"} | wrong))
    assert (source.answer, source.hold_replays) == ("at once", False)


def deliver(source: Source, key: str) -> None:
    signed = senders.sign("github", BODY, key=key, kind="issues")
    path = f"/hooks/{source.endpoint_token}/"
    assert Client().post(path, BODY, "application/json", headers=signed).status_code == 200


def decide(client: Client, key: str, act: str) -> None:
    letter = DeadLetter.objects.select_related("job").get(job__key__key=key)
    asked: dict[str, Any] = {"version": letter.job.version, "reason": "looked at GitHub"}
    client.post(f"/dead-letters/{letter.public_id}/{act}/", asked)


def test_a_held_replay_runs_once_released_and_never_once_discarded(
    acme: Tenant, admin: Client
) -> None:
    ran: list[str] = []
    source = senders.source("github")
    ask(admin, source, hold_replays="yes")
    with world.local("github.issues", lambda event: ran.append(event.key)):
        for key in ("g-1", "g-2", "g-3"):
            deliver(source, key)
        world.work_local()
        letters = DeadLetter.objects.values_list("job__key__key", "outcome")
        assert (ran, sorted(letters)) == (["g-1"], [("g-2", "suspect"), ("g-3", "suspect")])
        decide(admin, "g-2", "requeue")
        decide(admin, "g-3", "discard")
        world.make_due(Job.objects.get(key__key="g-2"))
        world.work_local()
    assert ran == ["g-1", "g-2"]
    states = Job.objects.order_by("key__key").values_list("state", flat=True)
    assert list(states) == ["done", "done", "discarded"]


def test_a_repeat_of_a_held_replay_is_a_duplicate_and_leaves_one_letter(
    admin: Client,
) -> None:
    source = senders.source("github", hold_replays=True)
    with world.local("github.issues", nothing):
        for key in ("g-1", "g-2", "g-2"):
            deliver(source, key)
    assert DeadLetter.objects.count() == 1
    verdicts = Receipt.objects.order_by("pk").values_list("verdict", flat=True)
    assert list(verdicts) == ["accepted", "accepted", "duplicate"]


def nothing(event: Event) -> None: ...


def test_conflicts_of_the_last_day_stand_on_the_sources_page_and_lead_to_their_list(
    acme: Tenant, admin: Client
) -> None:
    source = rows.source(acme, "stripe-live", preset="stripe")
    page = unescape(admin.get(f"/sources/{source.public_id}/").content.decode())
    assert "conflicts" not in page
    key = rows.key(source)
    for verdict in ("conflict", "conflict", "duplicate"):
        rows.receipt(key, verdict)
    page = unescape(admin.get(f"/sources/{source.public_id}/").content.decode())
    _, _, after = page.partition("the repeat says otherwise")
    address = after.partition('href="')[2].partition('"')[0]
    assert "verdict=conflict" in address
    assert after.partition("</a>")[0].endswith(">2")
    assert "2 receipts match" in admin.get(address).content.decode()
