"""Pre-flight of one letter: applied, will run, cannot tell; said on evidence, never guessed."""

from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from reliability.handlers import (
    Applied,
    CannotTell,
    LocalTransaction,
    NotApplied,
    ProviderHeader,
    UniqueConstraint,
)
from reliability.models import DeadLetter, Job
from tests.console import rows
from tests.database import world

pytestmark = pytest.mark.django_db

KIND = "stripe.charge.refunded"


def declared(**how: Any) -> AbstractContextManager[None]:
    return world.kind(KIND, lambda event: None, **how)


def silent(_: object) -> None:
    raise TimeoutError


@pytest.fixture
def letter() -> DeadLetter:
    return rows.letter(rows.source(rows.tenant()), "evt_1")


def shown(letter: DeadLetter, *, role: str = "operator") -> str:
    client = rows.signed_in(rows.member(letter.tenant, role))
    path = f"/dead-letters/{letter.public_id}/evidence/"
    return client.get(path, headers={"HX-Request": "true"}).content.decode()


def test_a_row_under_the_constraint_means_applied(letter: DeadLetter) -> None:
    row = User.objects.create_user("evt_1")
    with declared(sink=UniqueConstraint("auth.User", "username")):
        assert f"Already applied</span> as auth.User {row.pk}." in shown(letter)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (Applied("re_1"), "Already applied</span> as re_1."),
        (NotApplied(), "Will run</span> asked: not applied."),
        (CannotTell("no entry"), "Cannot tell</span> whether it was applied: no entry."),
    ],
)
def test_what_the_provider_says_is_what_is_shown(
    letter: DeadLetter, said: Any, words: str
) -> None:
    with declared(sink=ProviderHeader(), verify=lambda _: said):
        assert words in shown(letter)


def test_a_provider_that_does_not_answer_is_cannot_tell(letter: DeadLetter) -> None:
    with declared(sink=ProviderHeader(), verify=silent):
        assert "Cannot tell</span> whether it was applied: asking failed" in shown(letter)


def test_an_effect_that_commits_with_its_done_mark_was_not_applied(letter: DeadLetter) -> None:
    with declared(sink=LocalTransaction()):
        assert "Will run</span>" in shown(letter)


def test_a_closed_window_without_proof_says_so(letter: DeadLetter) -> None:
    Job.objects.update(not_after=timezone.now() - timedelta(hours=1))
    with declared(sink=ProviderHeader()):
        assert "Window closed</span> and nothing shows" in shown(letter)


def test_the_letters_page_asks_by_itself_and_offers_a_link_without_scripts(
    letter: DeadLetter,
) -> None:
    client = rows.signed_in(rows.member(letter.tenant, "operator"))
    page = client.get(f"/dead-letters/{letter.public_id}/").content.decode()
    assert f'hx-get="/dead-letters/{letter.public_id}/evidence/" hx-trigger="load"' in page
    plain = client.get(f"/dead-letters/{letter.public_id}/evidence/").content.decode()
    assert "<html" in plain
    assert "Cannot tell" in plain
