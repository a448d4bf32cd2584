"""Statements that are dropped into a folder: taken once finished, read, compared, left alone."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fsspec  # type: ignore[import-untyped]
import pytest
import time_machine
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from reliability import conf as conf_module
from reliability.alerts.letters import Scope
from reliability.alerts.measures import statements_to_chase
from reliability.claim.door import forget
from reliability.conf import Conf, conf
from reliability.models import (
    Artefact,
    AuditEntry,
    FolderFile,
    Reading,
    Report,
    Run,
    Source,
    Statement,
    StatementFolder,
)
from reliability.reconcile import folder_place, folders, statement
from reliability.reconcile.collect import Collected, collect
from reliability.reconcile.folder_names import day_of_name, pattern_error
from reliability.reconcile.folder_place import folder_error
from reliability.reconcile.folders import Looked, look_into
from tests.database.days import DAY, MORNING_AFTER, Row, a_file, a_source

pytestmark = pytest.mark.django_db

PATTERN = "day_{day}*.csv"
LATER = MORNING_AFTER + timedelta(minutes=15)


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    place = tmp_path / "drop"
    place.mkdir()
    limit(monkeypatch, folder_root=str(place))
    forget()
    with time_machine.travel(MORNING_AFTER, tick=False):
        yield place


def limit(monkeypatch: pytest.MonkeyPatch, **values: Any) -> None:
    changed = replace(conf(), **values)

    def now() -> Conf:
        return changed

    for module in (folder_place, folders):
        monkeypatch.setattr(module, "conf", now)


def a_folder(url: str, pattern: str = PATTERN) -> StatementFolder:
    source = a_source()
    return StatementFolder.objects.create(
        tenant_id=source.tenant_id, source=source, url=url, pattern=pattern,
        created_at=timezone.now(), created_by="mara",
    )  # fmt: skip


def local(root: Path) -> StatementFolder:
    return a_folder(root.as_uri())


def drop(root: Path, content: bytes, name: str = f"day_{DAY}.csv") -> Path:
    path = root / name
    path.write_bytes(content)
    os.utime(path, (1_000_000_000, 1_000_000_000))
    return path


def look_later(folder: StatementFolder) -> Looked:
    with time_machine.travel(LATER, tick=False):
        return look_into(folder)


def test_a_file_is_taken_at_the_second_look_and_its_day_compared(root: Path) -> None:
    folder, path = local(root), drop(root, a_file(Row("ch_1")))
    assert look_into(folder) == Looked(waiting=1)
    assert Artefact.objects.count() == 0
    assert look_later(folder) == Looked(taken=1)
    assert Statement.objects.get().line_count == 1
    assert Report.objects.get(day=DAY, current=True).completeness == "complete"
    assert path.read_bytes() == a_file(Row("ch_1"))
    assert look_later(folder) == Looked()


def test_a_file_that_grew_between_two_looks_is_not_taken(root: Path) -> None:
    folder, whole = local(root), a_file(Row("ch_1"), Row("ch_2"))
    drop(root, whole[:40])
    look_into(folder)
    drop(root, whole)
    assert look_later(folder) == Looked(waiting=1)
    with time_machine.travel(LATER + timedelta(minutes=15), tick=False):
        assert look_into(folder).taken == 1
    assert Statement.objects.get().line_count == 2


def test_the_same_bytes_under_another_name_are_seen_again_and_change_nothing(
    root: Path,
) -> None:
    folder = local(root)
    drop(root, a_file(Row("ch_1")))
    look_into(folder)
    look_later(folder)
    drop(root, a_file(Row("ch_1")), f"day_{DAY}_copy.csv")
    look_into(folder)
    assert look_later(folder) == Looked(taken=1, seen_again=1)
    assert (Artefact.objects.count(), Statement.objects.count()) == (1, 1)


def test_old_bytes_that_come_back_do_not_replace_the_revision_after_them(root: Path) -> None:
    folder = local(root)
    for number, rows in enumerate(([Row("ch_1")], [Row("ch_1"), Row("ch_2")], [Row("ch_1")])):
        drop(root, a_file(*rows), f"day_{DAY}_{number}.csv")
        look_into(folder)
        look_later(folder)
    assert Statement.objects.order_by("-revision").values_list("line_count", flat=True)[0] == 2


def test_a_wrong_file_is_kept_refused_and_told_what_it_seems_to_be(root: Path) -> None:
    folder = local(root)
    drop(root, b":20:STARTUMS\n:25:DE123\n:28C:1/1\n:60F:C261014EUR0,\n:62F:C261014EUR0,\n-\n")
    look_into(folder)
    assert look_later(folder) == Looked(taken=1, refused=1)
    assert "it seems to be mt940" in FolderFile.objects.get().refused
    assert Artefact.objects.get().refused


def test_files_that_are_none_of_ours_are_left_alone(root: Path) -> None:
    folder = local(root)
    for name in ("readme.txt", f".day_{DAY}.csv", f"day_{DAY}.csv.part", "day_2026-13-40.csv"):
        drop(root, b"x", name)
    (root / f"day_{DAY}.csv").mkdir()
    assert look_into(folder) == Looked()


def test_a_link_is_not_followed_wherever_it_leads(root: Path, tmp_path: Path) -> None:
    folder, secret = local(root), tmp_path / "secret.csv"
    secret.write_bytes(a_file(Row("ch_1")))
    (root / f"day_{DAY}.csv").symlink_to(secret)
    assert look_into(folder, at_once=True) == Looked()


def test_a_link_put_in_a_listed_file_s_place_is_not_read(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, path = local(root), drop(root, a_file(Row("ch_1")))
    secret = tmp_path / "secret.csv"
    secret.write_bytes(path.read_bytes())
    real = folder_place.listed

    def then_exchanged(place: Any) -> Any:
        found = list(real(place))
        path.unlink()
        path.symlink_to(secret)
        return found

    monkeypatch.setattr(folders, "listed", then_exchanged)
    looked = look_into(folder, at_once=True)
    assert (looked.taken, looked.waiting) == (0, 1)
    assert "became another file" in looked.why


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("https://example.com/x", "begins with one of file://, s3://, sftp://"),
        ("file:///a/../b", "no .."),
        ("file:///a/%2e%2e/b", "no .."),
        ("file://host/a", "write file:///folder"),
        ("sftp://", "write file:///folder"),
        ("sftp://mara:pw@bank.example/out", "no user, password or query"),
        ("s3://bucket/x?versionId=1", "no user, password or query"),
    ],
)
def test_a_url_that_may_not_be_a_folder_is_refused_with_the_reason(url: str, why: str) -> None:
    assert why in folder_error(url)


def test_a_local_folder_lies_under_the_root_also_through_links(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "link").symlink_to(tmp_path)
    for url in (tmp_path.as_uri(), f"{root.as_uri()}/link"):
        StatementFolder.objects.all().delete()
        Source.objects.all().delete()
        assert look_into(a_folder(url)).why == (
            "the folder lies outside RELIABILITY_FOLDER_ROOT"
        )
    limit(monkeypatch, folder_root="")
    assert "FOLDER_ROOT is not set" in look_into(StatementFolder.objects.get()).why


def test_a_folder_that_cannot_be_read_says_since_when_until_it_can(root: Path) -> None:
    folder = a_folder(f"{root.as_uri()}/later")
    assert look_into(folder).why == "there is no such folder"
    look_later(folder)
    folder.refresh_from_db()
    assert (folder.failing_since, folder.looked_at) == (MORNING_AFTER, LATER)
    (root / "later").mkdir()
    look_later(folder)
    folder.refresh_from_db()
    assert (folder.failing_since, folder.why) == (None, "")


def test_more_files_than_a_look_takes_wait_for_the_next(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, folder_root=str(root), folder_takes_max=2)
    folder = local(root)
    for number in range(3):
        drop(root, a_file(Row(f"ch_{number}")), f"day_{DAY}_{number}.csv")
    assert look_into(folder, at_once=True) == Looked(taken=2, waiting=1)


def test_a_folder_full_of_files_is_refused(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, folder_root=str(root), folder_files_max=2)
    for number in range(3):
        drop(root, b"x", f"{number}.txt")
    assert "more than 2 files lie there" in look_into(local(root)).why


def test_a_file_over_the_size_is_refused_before_it_is_read(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, folder_root=str(root), statement_bytes_max=10)
    drop(root, a_file(Row("ch_1")))
    assert look_into(local(root), at_once=True) == Looked(taken=1, refused=1)
    assert Artefact.objects.count() == 0
    assert "more than 10 bytes" in FolderFile.objects.get().refused


def test_a_place_elsewhere_is_read_through_the_same_eyes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(folder_place, "PROTOCOLS", frozenset({"memory"}))
    memory = fsspec.filesystem("memory")
    memory.store.clear()
    memory.pipe(f"/out/day_{DAY}.csv", a_file(Row("ch_1"), Row("ch_2")))
    folder = a_folder("memory://out")
    assert look_into(folder) == Looked(waiting=1)
    assert look_later(folder) == Looked(taken=1)
    assert Statement.objects.get().line_count == 2
    assert memory.exists(f"/out/day_{DAY}.csv")


def test_a_look_hangs_up_however_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_place, "PROTOCOLS", frozenset({"memory"}))
    ended = list[str]()
    client = SimpleNamespace(close=lambda: ended.append("closed"))
    memory = fsspec.filesystem("memory")
    memory.store.clear()
    monkeypatch.setattr(memory, "client", client, raising=False)
    monkeypatch.setattr(fsspec, "filesystem", lambda *_, **__: memory)
    assert "cannot be read" in look_into(a_folder("memory://nowhere")).why
    assert ended == ["closed"]


def test_a_missing_package_names_its_extra(settings: Any) -> None:
    settings.RELIABILITY_FOLDER_LOGINS = {"s3://statements": {"key": "k", "secret": "s"}}
    assert "reliability[s3]" in look_into(a_folder("s3://statements/out")).why


def test_a_login_belongs_to_one_host_and_names_the_host_s_key(settings: Any) -> None:
    settings.RELIABILITY_FOLDER_LOGINS = {"sftp://bank.example": {"username": "mara"}}
    assert (
        "no login for sftp://other.example"
        in look_into(a_folder("sftp://other.example/o")).why
    )
    StatementFolder.objects.update(url="sftp://bank.example/out")
    assert "names no host_key" in look_into(StatementFolder.objects.get()).why


class Policy:
    """Stands in for the base of paramiko's policies."""


def test_an_sftp_host_with_another_key_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in = SimpleNamespace(MissingHostKeyPolicy=Policy, SSHException=ConnectionError)
    monkeypatch.setitem(sys.modules, "paramiko", stand_in)
    pinned = folder_place._pinned("SHA256:ours")
    pinned.missing_host_key(None, "bank.example", SimpleNamespace(fingerprint="SHA256:ours"))
    with pytest.raises(ConnectionError, match="another host key"):
        pinned.missing_host_key(None, "bank.example", SimpleNamespace(fingerprint="SHA256:no"))


@pytest.mark.parametrize(
    ("name", "day"),
    [
        ("day_2026-10-14.csv", date(2026, 10, 14)),
        ("day_20261014_v2.csv", date(2026, 10, 14)),
        ("day_2026-02-30.csv", None),
        ("xday_2026-10-14.csv", None),
        ("day_2026-10-14.csv.bak", None),
    ],
)
def test_a_name_tells_its_day_or_is_none_of_ours(name: str, day: date | None) -> None:
    assert day_of_name(PATTERN, name) == day


@pytest.mark.parametrize(
    "pattern", ["*.csv", "{day}{day}", "../{day}.csv", "{day}" + "x" * 200]
)
def test_a_pattern_that_tells_no_day_or_leaves_the_folder_is_refused(pattern: str) -> None:
    assert pattern_error(pattern)


def test_logins_come_from_the_environment_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    variable = conf_module.FOLDER_LOGINS_VARIABLE
    monkeypatch.setenv(variable, '{"s3://b": {"key": "k"}}')
    assert conf_module.folder_logins() == {"s3://b": {"key": "k"}}
    monkeypatch.setenv(variable, "{broken and secret")
    with pytest.raises(Exception, match="must be JSON") as refusal:
        conf_module.folder_logins()
    assert "secret" not in str(refusal.value)


# All sources, and the commands.


def test_one_folder_that_fails_stops_no_other_and_the_run_says_so(root: Path) -> None:
    good = local(root)
    drop(root, a_file(Row("ch_1")))
    bad = a_source("second")
    StatementFolder.objects.create(
        tenant_id=bad.tenant_id, source=bad, url="file:///", pattern=PATTERN,
        created_at=timezone.now(), created_by="mara",
    )  # fmt: skip
    assert collect(Run.Trigger.BEAT) == Collected(waiting=1, failed=1)
    with time_machine.travel(LATER, tick=False):
        assert collect(Run.Trigger.BEAT) == Collected(taken=1, failed=1)
    runs = Run.objects.filter(job="collect").order_by("pk")
    assert [(run.ok, run.facts["taken"]) for run in runs] == [(False, 0), (False, 1)]
    assert Statement.objects.get().source == good.source


def run(command: str, *arguments: str) -> Any:
    out = StringIO()
    call_command(command, *arguments, "--json", stdout=out)
    return json.loads(out.getvalue())


def test_a_folder_is_set_shown_looked_into_and_removed_by_command(root: Path) -> None:
    a_source()
    of = ("shop", "--tenant", "acme")
    told = run("folder", *of, "--url", root.as_uri(), "--pattern", PATTERN)
    assert (told["folder"], told["waiting"]) == (root.as_uri(), 0)
    drop(root, a_file(Row("ch_1")))
    assert run("reconcile", "--source", "shop", "--folder")["waiting"] == 1
    assert run("reconcile", "--source", "shop", "--folder", "--at-once")["taken"] == 1
    assert run("folder", *of)["taken"] == 1
    assert run("folder", *of, "--remove")["folder"] is None
    acts = AuditEntry.objects.filter(about_id="shop").order_by("number")
    assert list(acts.values_list("act", flat=True)) == ["set folder", "remove folder"]


def test_a_folder_that_may_not_be_read_cannot_be_set(root: Path) -> None:
    a_source()
    for url, pattern in (
        ("file:///", PATTERN),
        (root.as_uri(), "*.csv"),
        ("ftp://x/y", PATTERN),
    ):
        with pytest.raises(CommandError):
            run("folder", "shop", "--tenant", "acme", "--url", url, "--pattern", pattern)
    assert StatementFolder.objects.count() == 0


def test_a_look_by_command_ends_badly_where_something_was_refused(root: Path) -> None:
    local(root)
    drop(root, b"nonsense")
    with pytest.raises(SystemExit) as end:
        run("reconcile", "--source", "shop", "--folder", "--at-once")
    assert end.value.code == 2


def test_an_import_tells_how_many_lines_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reliability.reconcile.lines.TOLD_EVERY", 2)
    source, heard = a_source(), list[int]()
    content = a_file(*(Row(f"ch_{number}") for number in range(5)))
    kept = statement.receive(source, name="day.csv", content=content, by="mara")
    statement.import_statement(kept, DAY, told=heard.append)
    assert heard == [2, 4]


def test_a_folder_that_cannot_be_read_wakes_whoever_a_missing_statement_wakes(
    root: Path,
) -> None:
    folder = a_folder(f"{root.as_uri()}/later")
    scope = Scope(tenant=folder.source.tenant)
    assert statements_to_chase(scope, timezone.now()) == {}
    look_into(folder)
    assert statements_to_chase(scope, timezone.now()) == {folder.source_id: 1}
    (root / "later").mkdir()
    look_into(folder)
    assert statements_to_chase(scope, timezone.now()) == {}


def test_whoever_looks_meanwhile_sees_how_far_an_import_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("reliability.reconcile.lines.TOLD_EVERY", 2)
    source, seen = a_source(), list[tuple[str, int]]()
    content = a_file(*(Row(f"ch_{number}") for number in range(5)))
    kept = statement.receive(source, name="day.csv", content=content, by="mara")

    def look(_lines: int) -> None:
        with connection.copy().cursor() as cursor:
            cursor.execute("SELECT name, lines FROM reliability_reading")
            seen.extend(cursor.fetchall())
            cursor.db.close()

    statement.import_statement(kept, DAY, told=look)
    assert seen == [("day.csv", 2), ("day.csv", 4)]
    assert Reading.objects.count() == 0
