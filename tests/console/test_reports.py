"""The daily compare's pages: what they say, what may be done from them, and in which tenant."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.test.utils import CaptureQueriesContext

from reliability.claim.door import forget
from reliability.conf import conf
from reliability.models import (
    Artefact,
    AuditEntry,
    DeadLetter,
    Discrepancy,
    FolderFile,
    IgnoreRule,
    Job,
    ProvisionalCheck,
    Reading,
    Report,
    Source,
    Statement,
    StatementFolder,
)
from tests.console import rows
from tests.database import world
from tests.database.days import (
    DAY,
    MORNING_AFTER,
    Row,
    a_file,
    a_source,
    open_ones,
    operation,
    report,
)

pytestmark = pytest.mark.django_db

KIND = "stripe.charge.succeeded"


@pytest.fixture(autouse=True)
def clock() -> Iterator[time_machine.Traveller]:
    forget()
    with time_machine.travel(MORNING_AFTER, tick=False) as traveller:
        yield traveller


@pytest.fixture
def source() -> Source:
    return a_source()


def as_role(source: Source, role: str, name: str = "") -> Client:
    return rows.signed_in(rows.member(source.tenant, role, name))


def text_of(answer: Any) -> str:
    """Return what a page reads like: no markup, single spaces."""
    plain = re.sub(r"<svg.*?</svg>|<[^>]+>", " ", answer.content.decode(), flags=re.DOTALL)
    return " ".join(plain.replace("\u202f", " ").replace("&nbsp;", " ").split())


def upload(client: Client, content: bytes, **more: Any) -> Any:
    form = {"source": "shop", "day": str(DAY), "file": SimpleUploadedFile("day.csv", content)}
    return client.post("/reports/upload/", form | more, follow=True)


def the_report(source: Source) -> Report:
    return Report.objects.get(source=source, current=True)


def the_one(source: Source) -> Discrepancy:
    return Discrepancy.objects.get(source=source)


# Showing.


def test_an_uploaded_statement_becomes_a_report_that_says_how_the_day_stands(
    source: Source,
) -> None:
    operation(source, "ch_1")
    operation(source, "ch_2", 900)
    operation(source, "ch_9", 3500)
    page = text_of(
        upload(
            as_role(source, "operator"),
            a_file(Row("ch_1"), Row("ch_2"), Row("ch_3", "249.00"), Row("ch_4", "61.00")),
        )
    )
    assert "shop, Wednesday 14 October 2026" in page
    assert "Europe/Amsterdam, 24 h" in page
    assert "Complete. 1 of 5 agree." in page
    assert "2 missing here (€310.00); 1 differs (€1.00); 1 unexpected (−\u2060€35.00)." in page
    assert "4 still open." in page
    assert "Unexplained explained to the last unit" in page
    assert "Never received" in page
    assert "Ours is €1.00 lower" in page
    assert "3 of 7 gates passed, 4 cannot be proven" in page


def test_a_truncated_statement_shows_its_failed_gate_and_no_verdict(source: Source) -> None:
    operation(source, "ch_9")
    page = text_of(upload(as_role(source, "operator"), a_file(Row("ch_1"), declared=2)))
    assert "Incomplete, so missing and unexpected are withheld." in page
    assert "2 rows declared, 1 read" in page
    assert "Verdicts are withheld." in page
    assert Discrepancy.objects.count() == 0


def test_the_same_file_again_changes_nothing_and_says_so(source: Source) -> None:
    client = as_role(source, "operator")
    upload(client, a_file(Row("ch_1")))
    page = text_of(upload(client, a_file(Row("ch_1"))))
    assert "These bytes were seen before: nothing has changed." in page
    assert (Report.objects.count(), Discrepancy.objects.count()) == (1, 1)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"PK\x03\x04", "day.csv, 2026-10-14: line 1: this is not a mapped-csv statement"),
        (b"", "the file is empty"),
        (b"id,kind\n1,2\n", "the header has no column"),
    ],
)
def test_a_refused_file_is_told_with_file_line_and_rule(
    source: Source, content: bytes, said: str
) -> None:
    page = text_of(upload(as_role(source, "operator"), content))
    assert f"Refused. day.csv, {DAY}: " in page
    assert said in page


@pytest.mark.parametrize(
    ("form", "status"),
    [
        ({"source": "nowhere"}, 400),
        ({"day": "soon"}, 400),
        ({"file": ""}, 400),
    ],
)
def test_a_form_that_names_no_source_day_or_file_is_not_understood(
    source: Source, form: dict[str, Any], status: int
) -> None:
    assert upload(as_role(source, "operator"), a_file(), **form).status_code == status
    assert Report.objects.count() == 0


def test_an_upload_over_the_limit_is_refused_before_anything_is_kept(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = replace(conf(), upload_bytes_max=100)
    monkeypatch.setattr("reliability.console.views.uploads.conf", lambda: small)
    page = text_of(upload(as_role(source, "operator"), a_file(Row("ch_1"), Row("ch_2"))))
    assert "Use manage.py reconcile --file for larger ones." in page
    assert Source.objects.get(pk=source.pk).artefacts.count() == 0


def test_the_index_shows_each_day_and_what_waits(source: Source) -> None:
    report(source, Row("ch_1"))
    page = text_of(as_role(source, "viewer").get("/reports/"))
    assert "1 of 1 sources could be compared for yesterday. 1 day waits for a person." in page
    assert "Wed 14 Oct: complete, 1 missing" in page
    assert "shop, Wed 14 Oct complete 1 missing" in page
    assert "shop, Thu 15 Oct by" in page


def test_an_index_without_sources_says_that_layer_3_proves_nothing() -> None:
    client = rows.signed_in(rows.member(rows.tenant("empty"), "viewer"))
    assert "so layer 3 proves nothing" in text_of(client.get("/reports/"))


def test_the_pages_ask_the_same_number_of_questions_however_much_there_is(
    source: Source,
) -> None:
    client = as_role(source, "viewer")
    client.get("/reports/")
    made = report(source, Row("ch_1"))
    few = [
        queries(client, at)
        for at in ("/reports/", f"/reports/{made.public_id}/", "/discrepancies/")
    ]
    made = report(source, *[Row(f"ch_{n}") for n in range(40)])
    for n in range(3):
        a_source(f"more-{n}")
    many = [
        queries(client, at)
        for at in ("/reports/", f"/reports/{made.public_id}/", "/discrepancies/")
    ]
    assert many == few


def queries(client: Client, address: str) -> int:
    from django.db import connection  # noqa: PLC0415 - bound to the test's database

    with CaptureQueriesContext(connection) as asked:
        assert client.get(address).status_code == 200
    return len(asked)


def test_hostile_texts_of_a_file_are_shown_as_text(source: Source) -> None:
    hostile = '"<script>alert(1)</script>"'
    made = report(source, Row(hostile, id="t1"))
    client = as_role(source, "viewer")
    one = the_one(source)
    for address in (
        f"/reports/{made.public_id}/",
        "/discrepancies/",
        f"/discrepancies/{one.public_id}/",
    ):
        shown = client.get(address).content
        assert b"<script>alert" not in shown
        assert b"&lt;script&gt;alert" in shown


def test_what_a_newer_version_says_differently_is_shown_beside_it(source: Source) -> None:
    report(source, Row("ch_1"), Row("ch_2"))
    operation(source, "ch_1")
    newer = report(source, Row("ch_1"), Row("ch_2"), Row("ch_3"))
    client = as_role(source, "viewer")
    page = text_of(client.get(f"/reports/{newer.public_id}/changes/"))
    assert "2 operations are told differently." in page
    assert "ch_1 charge Missing here €10.00 Agree €10.00" in page
    assert "ch_3 charge – Missing here €10.00" in page
    head = client.get(f"/reports/{newer.public_id}/")
    assert "version 2, compare with 1" in text_of(head)
    assert f"/reports/{newer.public_id}/changes/".encode() in head.content
    assert "ch_2" not in page


def test_a_report_leads_to_the_days_beside_it_and_to_none_that_is_not_there(
    source: Source,
) -> None:
    monday, tuesday = (DAY - timedelta(days=n) for n in (2, 1))
    made = {day: report(source, day=day) for day in (monday, tuesday, DAY)}
    report(a_source("other"), day=DAY - timedelta(days=3))
    client = as_role(source, "viewer")

    def beside(day: date) -> list[tuple[str, ...]]:
        page = client.get(f"/reports/{made[day].public_id}/").content.decode()
        return re.findall(r'href="/reports/([^"]+)/" rel="(prev|next)">([^<]+)<', page)

    ids = {day: str(one.public_id) for day, one in made.items()}
    assert beside(tuesday) == [
        (ids[monday], "prev", "Mon 12"), (ids[DAY], "next", "Wed 14"),
    ]  # fmt: skip
    assert beside(monday) == [(ids[tuesday], "next", "Tue 13")]
    assert beside(DAY) == [(ids[tuesday], "prev", "Tue 13")]


def test_a_filter_that_is_not_understood_is_refused(source: Source) -> None:
    made = report(source, Row("ch_1"))
    client = as_role(source, "viewer")
    for address in (
        f"/reports/{made.public_id}/?verdikt=missing",
        f"/reports/{made.public_id}/?verdict=gone",
        f"/reports/{made.public_id}/csv/?separator=pipe",
        "/discrepancies/?familie=missing",
    ):
        assert client.get(address).status_code == 400


# Acting.


def test_a_missing_event_is_recovered_from_the_report_and_the_next_compare_agrees(
    source: Source,
) -> None:
    made = report(source, Row("ch_1"))
    client = as_role(source, "operator")
    with world.local(KIND, lambda event: None):
        form = {"version": 1, "from": "report"}
        page = text_of(
            client.post(
                f"/discrepancies/{the_one(source).public_id}/recover/", form, follow=True
            )
        )
        assert "is being recovered. An event built from the statement’s line" in page
        Job.objects.update(state="done", ended_at=MORNING_AFTER)
    page = text_of(client.post(f"/reports/{made.public_id}/compare/", follow=True))
    assert "Complete. 1 of 1 agree. Nothing is open." in page
    assert "version 2" in page


RECOVERED = "is being recovered"


def shown_set(client: Client, made: Report) -> list[str]:
    """Return what the page of a recovery would send back: each with the version shown."""
    page = client.get(f"/reports/{made.public_id}/recover/").content.decode()
    return re.findall(r'name="discrepancy" value="([^"]+)"', page)


def start(client: Client, made: Report, picked: list[str], reason: str = "outage") -> str:
    form = {"discrepancy": picked, "reason": reason}
    return text_of(client.post(f"/reports/{made.public_id}/recover/start/", form, follow=True))


@pytest.fixture
def handled() -> Iterator[None]:
    with world.local(KIND, lambda event: None):
        yield


@pytest.mark.usefixtures("handled")
def test_all_that_a_report_misses_is_recovered_in_one_act_that_says_what_it_leaves_out(
    source: Source,
) -> None:
    dead = operation(source, "ch_dead", state="dead")
    operation(source, "ch_busy", state="retrying")
    made = report(
        source, Row("ch_1", "249.00"), Row("ch_2", "61.00"), Row("ch_dead"), Row("ch_busy"),
        Row("ch_usd", "7.00", currency="USD"), Row("re_1", "-5.00", kind="refund"),
    )  # fmt: skip
    client = as_role(source, "operator", "mara")
    assert "Recover 3 missing…" in text_of(client.get(f"/reports/{made.public_id}/"))
    page = text_of(client.get(f"/reports/{made.public_id}/recover/"))
    assert "3 would be recovered: €310.00 and $7.00. 3 are left out." in page
    assert page.count("its event is made from the statement’s line") == 3
    letter = DeadLetter.objects.get(job=dead)
    assert f"ch_dead charge It is in a dead letter: requeue that. DL-{letter.pk}" in page
    assert "ch_busy charge Its event is here and still being worked." in page
    assert "re_1 refund Nothing here handles stripe." in page
    assert "3 are being recovered." in start(client, made, shown_set(client, made))
    moved = Discrepancy.objects.filter(status="recovering").order_by("pk")
    assert {one.reference for one in moved} == {"ch_1", "ch_2", "ch_usd"}
    entries = AuditEntry.objects.filter(act="recover")
    assert {(one.actor, one.reason) for one in entries} == {("mara", "outage")}
    assert {one.about_id for one in entries} == {str(one.public_id) for one in moved}
    assert "missing…" not in text_of(client.get(f"/reports/{made.public_id}/"))


@pytest.mark.usefixtures("handled")
def test_a_second_click_recovers_nothing_twice(source: Source) -> None:
    made = report(source, Row("ch_1"), Row("ch_2"))
    client = as_role(source, "operator")
    picked = shown_set(client, made)
    assert "2 are being recovered." in start(client, made, picked)
    page = start(client, made, picked)
    assert "being recovered." not in page
    assert "2 are left out." in page
    assert page.count("It has moved on since this page was loaded: recovering.") == 2
    assert Job.objects.count() == 2
    assert AuditEntry.objects.filter(act="recover").count() == 2


@pytest.mark.usefixtures("handled")
def test_what_moved_since_the_page_was_shown_is_left_out_and_said(source: Source) -> None:
    made = report(source, *[Row(f"ch_{n}") for n in range(4)])
    client = as_role(source, "operator", "mara")
    picked = shown_set(client, made)
    taken, ignored = Discrepancy.objects.filter(reference__in=["ch_0", "ch_1"]).order_by("pk")
    at = "/discrepancies/{}/{}/"
    client.post(at.format(taken.public_id, "take"), {"version": 1})
    client.post(at.format(ignored.public_id, "ignore"), {"version": 1, "reason": "test card"})
    operation(source, "ch_2", state="dead")
    page = start(client, made, picked)
    assert f"1 {RECOVERED}. 3 are left out." in page
    assert f"D-{taken.pk}: It has moved on since this page was loaded: open." in page
    assert f"D-{ignored.pk}: It has moved on since this page was loaded: ignored" in page
    assert "It is in a dead letter: requeue that." in page
    moved = Discrepancy.objects.filter(status="recovering")
    assert [one.reference for one in moved] == ["ch_3"]
    assert DeadLetter.objects.open().count() == 1


@pytest.mark.usefixtures("handled")
def test_what_is_worth_too_much_for_one_person_is_asked_for_and_recovered_by_a_second(
    source: Source,
) -> None:
    made = report(source, Row("ch_1"), Row("ch_large", "10000.01"))
    mara, ines = as_role(source, "operator", "mara"), as_role(source, "operator", "ines")
    page = start(mara, made, shown_set(mara, made))
    assert f"1 {RECOVERED}. 1 needs a second person to recover: you asked." in page
    assert "You asked for this recovery" in text_of(
        mara.get(f"/reports/{made.public_id}/recover/")
    )
    assert shown_set(mara, made) == []
    assert Job.objects.count() == 1
    assert f"1 {RECOVERED}." in start(ines, made, shown_set(ines, made))
    large = Discrepancy.objects.get(reference="ch_large")
    assert (large.status, large.recover_asked_by, large.recovered_by) == (
        "recovering", "mara", "ines",
    )  # fmt: skip


@pytest.mark.usefixtures("handled")
def test_many_that_are_together_worth_too_much_for_one_person_take_two(
    source: Source,
) -> None:
    made = report(
        source, Row("ch_1", "6000.00"), Row("ch_2", "6000.00"),
        Row("ch_usd", "6000.00", currency="USD"),
    )  # fmt: skip
    mara, ines = as_role(source, "operator", "mara"), as_role(source, "operator", "ines")
    page = start(mara, made, shown_set(mara, made))
    assert f"1 {RECOVERED}. 2 need a second person to recover: you asked." in page
    assert {one.reference for one in Discrepancy.objects.filter(status="recovering")} == {
        "ch_usd"
    }
    alone = Discrepancy.objects.get(reference="ch_1")
    at = f"/discrepancies/{alone.public_id}/recover/"
    mara.post(at, {"version": alone.version})
    assert Job.objects.count() == 1
    made = report(
        source, Row("ch_1", "6000.00"), Row("ch_2", "6000.00"),
        Row("ch_usd", "6000.00", currency="USD"), Row("ch_3"),
    )  # fmt: skip
    alone.refresh_from_db()
    refused = mara.post(at, {"version": alone.version}, follow=True)
    assert "a second person has to agree" in text_of(refused)
    assert "3 are being recovered." in start(ines, made, shown_set(ines, made))


@pytest.mark.usefixtures("handled")
def test_one_act_takes_no_more_than_its_limit_and_says_so(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = replace(conf(), selection_max=2)
    for module in ("recovering", "views.recovery"):
        monkeypatch.setattr(f"reliability.console.{module}.conf", lambda: small)
    made = report(source, *[Row(f"ch_{n}") for n in range(3)])
    client = as_role(source, "operator")
    assert "Recover 2+ missing…" in text_of(client.get(f"/reports/{made.public_id}/"))
    page = text_of(client.get(f"/reports/{made.public_id}/recover/"))
    assert "One act takes at most 2: recover these, then come again for the others." in page
    assert len(shown_set(client, made)) == 2
    picked = [f"{one.public_id}:{one.version}" for one in Discrepancy.objects.all()]
    answer = client.post(
        f"/reports/{made.public_id}/recover/start/", {"discrepancy": picked, "reason": "x"}
    )
    assert answer.status_code == 400
    assert Job.objects.count() == 0


@pytest.mark.usefixtures("handled")
def test_what_is_not_reached_in_time_is_counted_and_stays_open(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    hasty = replace(conf(), recover_for=timedelta(seconds=-1))
    made = report(source, Row("ch_1"), Row("ch_2"))
    client = as_role(source, "operator")
    picked = shown_set(client, made)
    monkeypatch.setattr("reliability.reconcile.recover_many.conf", lambda: hasty)
    assert "2 not reached in time; recover again for those." in start(client, made, picked)
    assert Job.objects.count() == 0


@pytest.mark.usefixtures("handled")
def test_a_recovery_of_many_without_a_reason_or_a_readable_set_changes_nothing(
    source: Source,
) -> None:
    made = report(source, Row("ch_1"))
    client = as_role(source, "operator")
    picked = shown_set(client, made)
    for form in (
        {"discrepancy": picked},
        {"reason": "x"},
        {"reason": "x", "discrepancy": ["ch_1"]},
    ):
        at = f"/reports/{made.public_id}/recover/start/"
        assert client.post(at, form).status_code == 400
    assert Job.objects.count() == 0


@pytest.mark.usefixtures("handled")
def test_a_viewer_is_offered_no_recovery_and_a_foreign_set_does_not_exist(
    source: Source,
) -> None:
    made = report(source, Row("ch_1"))
    theirs = report(a_source("other", of="globex"), Row("ch_9"))
    viewer, operator = as_role(source, "viewer"), as_role(source, "operator", "mara")
    stranger = as_role(theirs.source, "admin", "olu")
    assert "missing…" not in text_of(viewer.get(f"/reports/{made.public_id}/"))
    form = {"discrepancy": shown_set(operator, made), "reason": "why"}
    at = f"/reports/{made.public_id}/recover/"
    assert viewer.get(at).status_code == 403
    assert viewer.post(f"{at}start/", form).status_code == 403
    assert stranger.get(at).status_code == 404
    assert stranger.post(f"{at}start/", form).status_code == 404
    foreign = form | {"discrepancy": shown_set(stranger, theirs)}
    assert operator.post(f"{at}start/", foreign).status_code == 404
    assert Job.objects.count() == 0


def test_nothing_is_offered_where_nothing_can_be_recovered(source: Source) -> None:
    made = report(source, Row("ch_1"))
    client = as_role(source, "operator")
    assert "missing…" not in text_of(client.get(f"/reports/{made.public_id}/"))
    page = text_of(client.get(f"/reports/{made.public_id}/recover/"))
    assert "Nothing can be recovered now." in page
    assert f"Nothing here handles {KIND}" in page


@pytest.mark.usefixtures("handled")
def test_how_many_can_be_recovered_is_found_in_the_same_number_of_questions(
    source: Source,
) -> None:
    client = as_role(source, "operator")
    made = report(source, Row("ch_1"))
    at = "/reports/{}/recover/"
    queries(client, at.format(made.public_id))
    few = queries(client, at.format(made.public_id))
    operation(source, "ch_50", state="dead")
    made = report(source, *[Row(f"ch_{n}") for n in range(51)])
    assert queries(client, at.format(made.public_id)) == few


def test_a_stale_page_changes_nothing_and_says_who_was_first(source: Source) -> None:
    report(source, Row("ch_1"))
    address = f"/discrepancies/{the_one(source).public_id}/ignore/"
    mara, ines = as_role(source, "operator", "mara"), as_role(source, "operator", "ines")
    mara.post(address, {"version": 1, "reason": "test card"})
    page = text_of(ines.post(address, {"version": 1, "reason": "other"}, follow=True))
    assert "ignored by mara. Nothing has changed." in page
    assert the_one(source).closed_reason == "test card"


def test_ignoring_without_a_reason_changes_nothing(source: Source) -> None:
    report(source, Row("ch_1"))
    client = as_role(source, "operator")
    address = f"/discrepancies/{the_one(source).public_id}/ignore/"
    assert "Say why" in text_of(client.post(address, {"version": 1}, follow=True))
    assert (
        client.post(address, {"version": 1, "reason": "x", "until": "soon"}).status_code == 400
    )
    assert open_ones(source) == {("ch_1", "missing")}


def test_a_green_day_is_signed_with_one_click_on_its_page(source: Source) -> None:
    operation(source, "ch_1")
    made = report(source, Row("ch_1"))
    client = as_role(source, "approver", "ines")
    assert b">Sign off<" in client.get(f"/reports/{made.public_id}/").content
    page = text_of(client.post(f"/reports/{made.public_id}/sign/", follow=True))
    assert "Reviewed by ines" in page
    entry = AuditEntry.objects.get(act="sign")
    assert (entry.actor, entry.facts["version"]) == ("ines", 1)
    assert "ines signed it" in text_of(
        client.post(f"/reports/{made.public_id}/sign/", follow=True)
    )


def test_a_red_day_is_signed_only_with_the_reason_why(source: Source) -> None:
    made = report(source, Row("ch_1"))
    client = as_role(source, "approver", "ines")
    address = f"/reports/{made.public_id}/sign/"
    assert "say why the day is signed" in text_of(client.post(address, follow=True))
    assert the_report(source).signed_by == ""
    client.post(address, {"reason": "the shop refunds it, FIN-12"})
    assert (the_report(source).signed_by, the_report(source).signed_note) == (
        "ines", "the shop refunds it, FIN-12",
    )  # fmt: skip


def test_who_prepared_a_day_cannot_review_it(source: Source) -> None:
    made = report(source)
    client = as_role(source, "approver", "ines")
    client.post(f"/reports/{made.public_id}/prepare/", {"reason": "looked through"})
    page = text_of(client.post(f"/reports/{made.public_id}/sign/", follow=True))
    assert "a second person signs" in page
    as_role(source, "approver", "olu").post(f"/reports/{made.public_id}/sign/")
    assert (the_report(source).prepared_by, the_report(source).signed_by) == ("ines", "olu")


def test_an_incomplete_day_is_forced_by_two_people_and_says_so(source: Source) -> None:
    made = report(source, Row("ch_1"), declared=2)
    mara, ines = as_role(source, "approver", "mara"), as_role(source, "approver", "ines")
    at = f"/reports/{made.public_id}/"
    mara.post(f"{at}force/", {"reason": "their footer counts the header"})
    assert "who asked cannot agree" in text_of(mara.post(f"{at}agree/", follow=True))
    assert the_report(source).completeness == "incomplete"
    page = text_of(ines.post(f"{at}agree/", follow=True))
    assert "Forced: an incomplete statement was compared all the same." in page
    assert "mara and ines: their footer counts the header" in page
    assert open_ones(source) == {("ch_1", "missing")}


def test_a_large_recovery_is_asked_by_one_and_made_by_another(source: Source) -> None:
    report(source, Row("ch_1", "10000.01"))
    at = f"/discrepancies/{the_one(source).public_id}/"
    mara, ines = as_role(source, "operator", "mara"), as_role(source, "operator", "ines")
    with world.local(KIND, lambda event: None):
        page = text_of(mara.post(f"{at}recover/", {"version": 1}, follow=True))
        assert "A second person has to recover" in page
        assert "takes two people; mara asked" in page
        ines.post(f"{at}recover/", {"version": 2})
    assert (the_one(source).status, Job.objects.count()) == ("recovering", 1)


def test_somebody_takes_it_and_leaves_a_word(source: Source) -> None:
    report(source, Row("ch_1"))
    client = as_role(source, "operator", "mara")
    at = f"/discrepancies/{the_one(source).public_id}/"
    client.post(f"{at}take/", {"version": 1})
    page = text_of(
        client.post(f"{at}comment/", {"version": 2, "reason": "asked the shop"}, follow=True)
    )
    assert "mara looks after it" in page
    assert "mara: comment, asked the shop" in page
    assert open_ones(source) == {("ch_1", "missing")}


# What would change, and what did.


def test_a_preview_shows_what_would_change_and_changes_nothing(source: Source) -> None:
    report(source, Row("ch_1"))
    operation(source, "ch_3")
    client = as_role(source, "operator")
    page = text_of(upload(client, a_file(Row("ch_2"), Row("ch_3")), preview="1"))
    assert "The file would be revision 2 with 2 lines" in page
    assert "1 discrepancy would open and 1 close." in page
    assert "ch_1: Missing here → nothing" in page
    assert (Report.objects.count(), Statement.objects.count()) == (1, 1)
    assert open_ones(source) == {("ch_1", "missing")}
    [kept] = Artefact.objects.filter(statements=None)
    form = {"day": str(DAY)}
    page = text_of(client.post(f"/files/{kept.public_id}/count/", form, follow=True))
    assert "Complete. 1 of 2 agree." in page
    assert open_ones(source) == {("ch_2", "missing")}


def test_a_preview_of_the_same_bytes_says_that_nothing_would_change(source: Source) -> None:
    report(source, Row("ch_1"))
    page = text_of(upload(as_role(source, "operator"), a_file(Row("ch_1")), preview="1"))
    assert "Nothing would change" in page


def test_a_preview_of_a_refused_file_says_why(source: Source) -> None:
    page = text_of(upload(as_role(source, "operator"), b"PK\x03\x04", preview="1"))
    assert "a zip archive" in page
    assert "a zip archive" in text_of(as_role(source, "viewer").get("/statements/refused/"))


def test_a_revision_shows_the_lines_that_differ(source: Source) -> None:
    report(source, Row("ch_1"), Row("ch_2"))
    made = report(source, Row("ch_1", "11.00"), Row("ch_3"))
    client = as_role(source, "viewer")
    assert made.statement
    page = text_of(client.get(f"/statements/{made.statement.public_id}/"))
    assert "3 lines differ from revision 1." in page
    assert "id:ch_1-t ch_1 €10.00 €11.00" in page
    assert "id:ch_2-t ch_2 €10.00 gone" in page
    assert "id:ch_3-t ch_3 not there €10.00" in page
    assert "2 statements are kept" in text_of(client.get("/statements/"))


def test_missing_events_of_one_outage_are_one_line(source: Source) -> None:
    for n in range(3):
        operation(source, f"ch_{n}", state="dead")
    made = report(source, *[Row(f"ch_{n}") for n in range(4)])
    page = text_of(as_role(source, "viewer").get(f"/reports/{made.public_id}/"))
    assert "In dead letter LedgerDown 3 €30.00" in page
    assert "Never received – 1 €10.00" in page


def test_a_letter_and_its_trace_say_in_words_what_the_statement_says(source: Source) -> None:
    job = operation(source, "ch_1", state="dead")
    made = report(source, Row("ch_1"))
    client = as_role(source, "viewer")
    letter = client.get(f"/dead-letters/{DeadLetter.objects.get(job=job).public_id}/")
    trace = client.get("/trace/", {"find": job.key.key})
    for answer in (letter, trace):
        assert "In dead letter" in text_of(answer)
        assert "in_dead_letter" not in text_of(answer)
    for address in (f"reports/{made.public_id}", f"discrepancies/{the_one(source).public_id}"):
        assert f'href="/{address}/"' in letter.content.decode()


# Rules and months.


def test_a_rule_is_added_and_ended_by_who_may_sign(source: Source) -> None:
    form = {
        "source": "shop", "name": "monitor", "family": "missing", "operation_class": "charge",
        "until": "2026-11-01", "reason": "test card", "amount": "1000", "currency": "eur",
    }  # fmt: skip
    assert as_role(source, "operator").post("/ignore-rules/add/", form).status_code == 403
    client = as_role(source, "approver", "ines")
    client.post("/ignore-rules/add/", form)
    made = report(source, Row("ch_1"), Row("ch_2", "10.01"))
    assert open_ones(source) == {("ch_2", "missing")}
    page = text_of(client.get("/ignore-rules/"))
    assert (
        "monitor shop, by ines missing charge, up to 1000 minor units of EUR test card 1"
        in page
    )
    assert "1 ignored by hand or by rule" in text_of(client.get(f"/reports/{made.public_id}/"))
    client.post(f"/ignore-rules/{IgnoreRule.objects.get().public_id}/end/")
    assert open_ones(source) == {("ch_1", "missing"), ("ch_2", "missing")}
    assert client.post("/ignore-rules/add/", form | {"until": "soon"}).status_code == 400


def test_a_month_is_closed_when_every_due_day_is_signed(
    source: Source, clock: time_machine.Traveller
) -> None:
    Source.objects.filter(pk=source.pk).update(
        created_at=datetime(2026, 10, 14, 12, tzinfo=UTC)
    )
    operation(source, "ch_1")
    made = report(source, Row("ch_1"))
    client = as_role(source, "approver", "ines")
    page = text_of(client.get("/reports/month/"))
    assert "0 of 1 sources are closed" in page
    assert "not closed 1 of 1 0 1 0 – €10.00 €10.00" in page
    client.post(f"/reports/{made.public_id}/sign/")
    assert "1 of 1 sources are closed" in text_of(client.get("/reports/month/?month=2026-10"))
    for wrong in ("month=oktober", "month=2026-13", "monat=2026-10"):
        assert client.get(f"/reports/month/?{wrong}").status_code == 400


def test_the_pack_of_a_month_holds_every_hash_and_its_own(source: Source) -> None:
    operation(source, "ch_1")
    made = report(source, Row("ch_1"))
    client = as_role(source, "viewer")
    packed = json.loads(client.get("/reports/month/pack/?month=2026-10").content)
    [row] = packed["reports"]
    assert (row["day"], row["inputs_sha256"]) == (
        "2026-10-14",
        bytes(made.inputs_sha256).hex(),
    )
    text = json.dumps(
        packed["reports"], sort_keys=True, ensure_ascii=False, separators=(",", ":")
    )
    assert packed["reports_sha256"] == hashlib.sha256(text.encode()).hexdigest()


# Files.


def test_the_csv_has_one_amount_column_per_currency_and_runs_no_formula(
    source: Source,
) -> None:
    operation(source, "ch_1", 900)
    made = report(
        source, Row("ch_1"), Row("=1+1", "-5.00", id="@x"), Row("ch_2", "7.00", currency="USD")
    )
    client = as_role(source, "viewer")
    answer = client.get(f"/reports/{made.public_id}/csv/")
    assert answer.headers["Content-Disposition"] == (
        'attachment; filename="shop_2026-10-14_v1.csv"'
    )
    table = list(csv.reader(io.StringIO(b"".join(answer).decode())))
    assert table[0] == [
        "verdict", "cause", "class", "reference", "line", "their id",
        "theirs EUR", "ours EUR", "theirs USD", "ours USD",
    ]  # fmt: skip
    by_reference = {row[3]: row for row in table[1:]}
    assert by_reference["ch_1"][6:] == ["10.00", "9.00", "", ""]
    assert by_reference["ch_2"][6:] == ["", "", "7.00", ""]
    assert by_reference["'=1+1"][5:7] == ["'@x", "-5.00"]


def test_the_csv_can_be_written_for_a_comma_country(source: Source) -> None:
    made = report(source, Row("ch_1", "10.50"))
    client = as_role(source, "viewer")
    asked = f"/reports/{made.public_id}/csv/?separator=semicolon&decimal=comma&bom=yes"
    content = b"".join(client.get(asked))
    assert content.startswith(b"\xef\xbb\xbfverdict;")
    assert b";10,50;" in content


def test_the_json_holds_the_report_and_every_verdict(source: Source) -> None:
    operation(source, "ch_1")
    made = report(source, Row("ch_1"), Row("ch_2"))
    answer = as_role(source, "viewer").get(f"/reports/{made.public_id}/json/")
    found = json.loads(b"".join(answer))
    assert (found["source"], found["day"], found["completeness"]) == (
        "shop", "2026-10-14", "complete",
    )  # fmt: skip
    assert {one["reference"]: one["verdict"] for one in found["verdicts"]} == {
        "ch_1": "matched", "ch_2": "missing",
    }  # fmt: skip
    assert found["file"]["sha256"] == bytes(made.statement.artefact.sha256).hex()  # type: ignore[union-attr]


# Tenants.


def test_another_tenant_s_report_and_discrepancy_do_not_exist(source: Source) -> None:
    made = report(source, Row("ch_1"))
    one = the_one(source)
    stranger = rows.signed_in(rows.member(rows.tenant("globex"), "admin"))
    for part in ("", "changes/", "csv/", "json/"):
        assert stranger.get(f"/reports/{made.public_id}/{part}").status_code == 404
    for part in ("compare/", "force/", "agree/", "prepare/", "sign/"):
        form = {"reason": "why"}
        assert stranger.post(f"/reports/{made.public_id}/{part}", form).status_code == 404
    assert stranger.get(f"/discrepancies/{one.public_id}/").status_code == 404
    for part in ("recover/", "ignore/", "resolve/", "reopen/"):
        form = {"version": 1, "reason": "why"}  # type: ignore[dict-item]
        assert stranger.post(f"/discrepancies/{one.public_id}/{part}", form).status_code == 404
    assert made.statement
    assert stranger.get(f"/statements/{made.statement.public_id}/").status_code == 404
    at = f"/files/{made.statement.artefact.public_id}/count/"
    assert stranger.post(at, {"day": str(DAY)}).status_code == 404
    assert upload(stranger, a_file()).status_code == 400
    assert b"ch_1" not in stranger.get("/discrepancies/").content
    assert b"shop" not in stranger.get("/reports/").content
    assert open_ones(source) == {("ch_1", "missing")}
    assert (Report.objects.count(), AuditEntry.objects.count()) == (1, 0)


def test_a_viewer_sees_no_button_that_would_act_on_a_report(source: Source) -> None:
    made = report(source, Row("ch_1"), declared=None)
    client = as_role(source, "viewer")
    for address in (
        "/reports/",
        f"/reports/{made.public_id}/",
        f"/discrepancies/{the_one(source).public_id}/",
    ):
        shown = client.get(address).content.decode()
        for verb in ("upload", "recover", "ignore", "compare", "sign", "prepare", "force"):
            assert f'/{verb}/"' not in shown


def test_an_unknown_report_is_a_404(source: Source) -> None:
    assert as_role(source, "viewer").get(f"/reports/{uuid.uuid4()}/").status_code == 404


def test_days_of_a_month_ago_are_on_the_strip_and_older_ones_are_not(
    source: Source, clock: time_machine.Traveller
) -> None:
    report(source, Row("ch_1"))
    clock.move_to(datetime(2026, 11, 13, 12, tzinfo=UTC))
    assert b"Wed 14 Oct:" in as_role(source, "viewer").get("/reports/").content
    clock.shift(timedelta(days=1))
    assert b"Wed 14 Oct:" not in as_role(source, "viewer", "late").get("/reports/").content


# How statements come by themselves.


def test_folders_readings_and_provisional_checks_are_told_to_their_tenant_only(
    source: Source,
) -> None:
    now, viewer = MORNING_AFTER, as_role(source, "viewer")
    folder = StatementFolder.objects.create(
        tenant_id=source.tenant_id, source=source, url="file:///drop", pattern="{day}.csv",
        created_at=now, created_by="mara", looked_at=now, failing_since=now, why="no such folder",
    )  # fmt: skip
    FolderFile.objects.create(
        tenant_id=source.tenant_id, folder=folder, name="2026-10-14.csv", size_bytes=1,
        modified="", since=now, taken_at=now, refused="2026-10-14.csv seems to be mt940",
    )  # fmt: skip
    Reading.objects.create(
        tenant_id=source.tenant_id, artefact_id=1, name="big.csv", lines=12_000,
        started_at=now, updated_at=now,
    )  # fmt: skip
    ProvisionalCheck.objects.create(
        tenant_id=source.tenant_id, source=source, asked_at=now, from_at=now, accepted=7
    )
    told = text_of(viewer.get("/reports/"))
    for words in (
        "no such folder, since", "seems to be mt940", "big.csv: 12 000 lines so far",
        "7 undelivered events fetched",
    ):  # fmt: skip
        assert words in told, words
    for model in (StatementFolder, Reading, ProvisionalCheck):
        model.objects.update(tenant=world.tenant("other"))
    told = text_of(viewer.get("/reports/"))
    assert "no such folder" not in told
    assert "big.csv" not in told
    assert "undelivered" not in told


def test_a_reading_whose_process_died_is_not_told(source: Source) -> None:
    died = MORNING_AFTER - timedelta(minutes=3)
    Reading.objects.create(
        tenant_id=source.tenant_id, artefact_id=1, name="big.csv", lines=12_000,
        started_at=died, updated_at=died,
    )  # fmt: skip
    assert "big.csv" not in text_of(as_role(source, "viewer").get("/reports/"))
