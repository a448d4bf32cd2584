"""The command line's twin of redrives: the same verbs, JSON, and an exit code that says refused."""

import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from reliability.models import DeadLetter, Job, Redrive
from tests.database import many, world

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def letters() -> Iterator[None]:
    many.dead_letters(world.source(), 3, queue="local")
    with world.local("book", lambda event: None):
        yield


def redrive(act: str, *arguments: str) -> Any:
    out = io.StringIO()
    tenant = [] if act == "advance" else ["--tenant", "acme"]
    call_command("redrive", act, *tenant, "--json", *arguments, stdout=out)
    return json.loads(out.getvalue())


def test_a_dry_run_prints_the_verdicts_and_starts_nothing() -> None:
    told = redrive("start", "--kind", "book", "--dry-run")
    assert told["dry_run"] == [{"verdict": "will run", "letters": 3}]
    assert (told["state"], told["filter"]) == ("frozen", "kind=book")
    assert DeadLetter.objects.open().count() == 3


def test_it_starts_advances_pauses_resumes_and_cancels() -> None:
    told = redrive("start", "--kind", "book", "--pace", "one", "--reason", "fixed")
    name = told["redrive"]
    assert told["state"] == "running"
    assert redrive("advance")["redrives"][0]["requeued"] == 1
    assert redrive("pause", name)["state"] == "paused"
    assert redrive("resume", name)["state"] == "running"
    assert redrive("list", "--live")["redrives"][0]["pending"] == 2
    assert redrive("cancel", name, "--reason", "wrong release")["state"] == "cancelled"
    shown = redrive("show", name)
    assert (shown["running"], shown["skipped"]) == (1, 2)
    assert Job.objects.filter(state="ready").count() == 1


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("start", "--reason", "fixed"), "Give a filter"),
        (("start", "--kind", "book"), "Say why"),
        (("start", "--kind", "nothing", "--reason", "fixed"), "No open letter"),
        (("start", "--kind", "book", "--reason", "fixed", "--rate", "0"), "per second"),
        (("pause", "R-999999"), "has no redrive"),
        (("show", "nonsense"), "R-7 or by its id"),
    ],
)
def test_what_is_refused_ends_with_one_line(arguments: tuple[str, ...], why: str) -> None:
    with pytest.raises(CommandError, match=why):
        redrive(*arguments)
    assert not Redrive.objects.exclude(state="frozen").exists()
    assert DeadLetter.objects.open().count() == 3


def test_the_tables_for_people_name_the_redrive(capsys: pytest.CaptureFixture[str]) -> None:
    out = io.StringIO()
    told = redrive("start", "--kind", "book", "--reason", "fixed")
    for act in (("list", "--tenant", "acme"), ("show", "--tenant", "acme", told["redrive"])):
        call_command("redrive", *act, stdout=out)
    call_command("redrive", "advance", stdout=out)
    assert out.getvalue().count(told["redrive"]) == 3
