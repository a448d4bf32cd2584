"""`manage.py reconcile` says what a report says, and its exit code is the short of it."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.core.management import CommandError, call_command

from reliability.models import Source
from tests.database.days import DAY, MORNING_AFTER, Row, a_file, a_source, operation

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def clock() -> Iterator[None]:
    with time_machine.travel(MORNING_AFTER, tick=False):
        yield


@pytest.fixture
def source() -> Source:
    return a_source()


def run(*arguments: str, tmp_path: Path, content: bytes | None = None) -> tuple[int, str]:
    """Run the command; return its exit code and what it printed."""
    if content is not None:
        (tmp_path / "day.csv").write_bytes(content)
        arguments = (*arguments, "--file", str(tmp_path / "day.csv"))
    out = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command(
            "reconcile", "--source", "shop", "--day", str(DAY), *arguments, stdout=out
        )
    assert isinstance(ended.value.code, int)
    return ended.value.code, out.getvalue()


def test_a_day_that_agrees_ends_with_zero(source: Source, tmp_path: Path) -> None:
    operation(source, "ch_1")
    code, text = run("--json", tmp_path=tmp_path, content=a_file(Row("ch_1")))
    found: dict[str, Any] = json.loads(text)
    assert (code, found["completeness"], found["open"]) == (0, "complete", 0)
    assert found["counts"] == {"matched": 1}
    assert found["bridge"] == [
        {"currency": "EUR", "theirs": "10.00 EUR", "ours": "10.00 EUR", "steps": ""}
    ]


def test_an_open_discrepancy_ends_with_one(source: Source, tmp_path: Path) -> None:
    code, text = run("--json", tmp_path=tmp_path, content=a_file(Row("ch_1")))
    found = json.loads(text)
    assert code == 1
    assert found["discrepancies"] == [
        {
            "reference": "ch_1", "class": "charge", "verdict": "missing",
            "cause": "never_received", "status": "open", "theirs": "10.00 EUR", "ours": "",
        }
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (a_file(Row("ch_1"), declared=2), "incomplete"),
        (b"PK\x03\x04", "a zip archive"),
        (None, "it is due by 2026-10-15 10:00 UTC"),
    ],
)
def test_a_day_that_cannot_be_relied_on_ends_with_two(
    source: Source, tmp_path: Path, content: bytes | None, said: str
) -> None:
    code, text = run(tmp_path=tmp_path, content=content)
    assert code == 2
    assert said in " ".join(text.split())


def test_the_same_file_again_says_the_same(source: Source, tmp_path: Path) -> None:
    first = run("--json", tmp_path=tmp_path, content=a_file(Row("ch_1")))
    assert run("--json", tmp_path=tmp_path, content=a_file(Row("ch_1"))) == first


def test_a_source_two_tenants_have_must_be_said_apart(source: Source, tmp_path: Path) -> None:
    a_source(of="borealis")
    with pytest.raises(CommandError, match="say which with --tenant"):
        call_command("reconcile", "--source", "shop", "--day", str(DAY))
    code, _ = run("--tenant", "acme", tmp_path=tmp_path, content=a_file())
    assert code == 0


def test_an_unknown_source_or_file_is_one_line(source: Source) -> None:
    with pytest.raises(CommandError, match=r"Unknown source 'shep'\. Known: shop"):
        call_command("reconcile", "--source", "shep", "--day", str(DAY))
    with pytest.raises(CommandError, match="No such file"):
        call_command(
            "reconcile", "--source", "shop", "--day", str(DAY), "--file", "nowhere.csv"
        )
