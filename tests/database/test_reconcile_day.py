"""A day's compare on real tables: gates, verdicts, versions, and what another day lists."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.db import DatabaseError, transaction

from reliability.models import Artefact, Report, Source, Statement
from reliability.reconcile.day import Force, NothingToCompare, compare_day
from reliability.reconcile.statement import Refused
from tests.database.days import (
    DAY,
    MORNING_AFTER,
    NOON,
    Row,
    a_file,
    a_source,
    give,
    open_ones,
    operation,
    report,
    told,
)

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def clock() -> Iterator[time_machine.Traveller]:
    with time_machine.travel(MORNING_AFTER, tick=False) as traveller:
        yield traveller


@pytest.fixture
def source() -> Source:
    return a_source()


def test_a_line_and_its_operation_match_and_the_day_is_complete(source: Source) -> None:
    operation(source, "ch_1", 1000)
    made = report(source, Row("ch_1", "10.00"))
    assert (made.completeness, made.version, made.current) == ("complete", 1, True)
    assert told(made) == {("ch_1", "matched", "")}
    assert made.counts == {"matched": 1}
    assert open_ones(source) == set()


@pytest.mark.parametrize(
    ("state", "cause"),
    [
        ("ready", "received_unprocessed"),
        ("retrying", "retrying"),
        ("dead", "in_dead_letter"),
        ("discarded", "discarded"),
    ],
)
def test_a_line_whose_event_did_not_take_effect_is_missing_with_the_reason(
    source: Source, state: str, cause: str
) -> None:
    operation(source, "ch_1", state=state)
    made = report(source, Row("ch_1"), Row("ch_2"))
    assert told(made) == {("ch_1", "missing", cause), ("ch_2", "missing", "never_received")}
    assert open_ones(source) == {("ch_1", "missing"), ("ch_2", "missing")}


@pytest.mark.parametrize(
    ("amount", "facts", "verdict"),
    [
        (1001, {}, ("amount_mismatch", "")),
        (1000, {"currency": "USD"}, ("currency_mismatch", "")),
        (1000, {"exponent": 3}, ("amount_mismatch", "exponent")),
        (None, {}, ("matched", "")),
        (1000, {"occurred_at": NOON - timedelta(days=3)}, ("matched_timing", "")),
        (1000, {"occurred_at": NOON + timedelta(days=1)}, ("matched_timing", "")),
    ],
)
def test_a_pair_shows_its_worst_difference(
    source: Source, amount: int | None, facts: dict[str, Any], verdict: tuple[str, str]
) -> None:
    operation(source, "ch_1", amount, **facts)
    assert told(report(source, Row("ch_1", "10.00"))) == {("ch_1", *verdict)}


def test_a_refund_is_positive_at_our_side_and_negative_on_the_statement(
    source: Source,
) -> None:
    operation(source, "re_1", 1840, operation_class="refund")
    made = report(source, Row("re_1", "-18.40", kind="refund"))
    assert told(made) == {("re_1", "matched", "")}
    assert made.bridge["EUR"]["theirs_minor"] == made.bridge["EUR"]["ours_minor"] == -1840


def test_an_operation_no_line_answers_to_is_in_transit_until_it_was_due(
    source: Source,
) -> None:
    operation(source, "ch_late", occurred_at=datetime(2026, 10, 14, 20, 0, tzinfo=UTC))
    operation(source, "ch_due", occurred_at=datetime(2026, 10, 14, 19, 59, tzinfo=UTC))
    operation(source, "ch_dropped", state="discarded")
    made = report(source, Row("ch_1"), Row("fee", kind="fee"))
    assert told(made) == {
        ("ch_1", "missing", "never_received"),
        ("ch_late", "in_transit", ""),
        ("ch_due", "unexpected", ""),
        ("ch_dropped", "out_of_scope", "discarded"),
        ("", "out_of_scope", ""),
    }


def test_a_line_younger_than_the_grace_is_early(
    source: Source, clock: time_machine.Traveller
) -> None:
    clock.move_to(datetime(2026, 10, 14, 22, 0, tzinfo=UTC))
    young, old = "2026-10-14T20:00:01+00:00", "2026-10-14T20:00:00+00:00"
    made = report(source, Row("ch_young", occurred=young), Row("ch_old", occurred=old))
    assert told(made) == {("ch_young", "early", ""), ("ch_old", "missing", "never_received")}


def test_a_reference_that_repeats_is_their_duplicate(source: Source) -> None:
    operation(source, "ch_1")
    made = report(source, Row("ch_1", id="a"), Row("ch_1", id="b"))
    assert told(made) == {("ch_1", "matched", ""), ("ch_1", "duplicate_theirs", "")}
    assert open_ones(source) == {("ch_1", "duplicate_theirs")}


def test_two_equal_rows_are_two_lines(source: Source) -> None:
    twin = Row("ch_1", id="same")
    given = give(source, a_file(twin, twin))
    assert isinstance(given, Statement)
    assert list(given.lines.order_by("position").values_list("identity", flat=True)) == [
        "id:same",
        "id:same#2",
    ]


def test_the_bridge_walks_from_their_total_to_ours(source: Source) -> None:
    operation(source, "ch_1", 1000)
    operation(source, "ch_2", 500)
    operation(source, "ch_3", 250)
    operation(source, "ch_4", 9900, currency="USD")
    made = report(
        source, Row("ch_1", "10.00"), Row("ch_2", "5.50"), Row("ch_5", "70.00"),
        Row("ch_4", "99.00"), Row("", "-3.00", kind="fee"),
    )  # fmt: skip
    euro, dollar = made.bridge["EUR"], made.bridge["USD"]
    assert (euro["theirs_minor"], euro["ours_minor"]) == (18150, 1750)
    assert {
        name: (step["items"], step["minor"]) for name, step in euro["buckets"].items()
    } == {
        "matched": (1, 0),
        "amount_mismatch": (1, 50),
        "missing": (1, 7000),
        "currency_mismatch": (1, 9900),
        "unexpected": (1, -250),
        "out_of_scope": (1, -300),
    }
    assert (dollar["theirs_minor"], dollar["ours_minor"]) == (0, 9900)
    assert dollar["buckets"] == {"currency_mismatch": {"items": 0, "minor": -9900}}
    for walk in made.bridge.values():
        steps = sum(step["minor"] for step in walk["buckets"].values())
        assert walk["theirs_minor"] - walk["ours_minor"] == steps


def test_the_same_file_at_two_sources_is_two_statements(source: Source) -> None:
    other = a_source("other")
    operation(other, "ch_1")
    assert told(report(source, Row("ch_1"))) == {("ch_1", "missing", "never_received")}
    assert told(report(other, Row("ch_1"))) == {("ch_1", "matched", "")}
    assert (Artefact.objects.count(), Statement.objects.count()) == (2, 2)


# Gates.


def test_a_failing_gate_withholds_missing_and_unexpected(source: Source) -> None:
    operation(source, "ch_1")
    operation(source, "ch_9")
    made = report(source, Row("ch_1"), Row("ch_2"), declared=3)
    assert made.completeness == "incomplete"
    assert told(made) == {
        ("ch_1", "matched", ""),
        ("ch_2", "not_comparable", "withheld"),
        ("ch_9", "not_comparable", "withheld"),
    }
    assert open_ones(source) == set()
    [failed] = [gate for gate in made.gates if gate["verdict"] == "failed"]
    assert (failed["name"], failed["numbers"]) == ("counts", {"declared": "3", "read": "2"})


def test_a_row_that_cannot_be_read_is_quarantined_and_fails_the_day(source: Source) -> None:
    content = a_file(Row("ch_1"), Row("ch_2", "12..34"))
    given = give(source, content)
    assert isinstance(given, Statement)
    assert [(row["position"], row["raw"][:4]) for row in given.quarantined] == [(3, "ch_2")]
    made = compare_day(source, DAY, by="mara")
    assert (made.completeness, made.counts["not_comparable"]) == ("incomplete", 2)


def test_lines_of_another_local_day_fail_the_coverage(source: Source) -> None:
    made = report(source, Row("ch_1", occurred="2026-10-13T21:59:59+00:00"))
    assert made.completeness == "incomplete"
    assert [gate["name"] for gate in made.gates if gate["verdict"] == "failed"] == ["coverage"]


def test_a_file_of_another_kind_is_kept_and_refused_with_what_it_seems_to_be(
    source: Source,
) -> None:
    given = give(source, b"PK\x03\x04 a spreadsheet")
    assert isinstance(given, Refused)
    assert "day.csv, 2026-10-14" in given.sentence
    assert "a zip archive or a spreadsheet" in given.sentence
    assert Artefact.objects.get().refused == given.sentence
    made = compare_day(source, DAY, by="mara")
    assert (made.completeness, made.counts, made.statement) == ("incomplete", {}, None)


def test_a_wrong_header_leaves_no_line_behind(source: Source) -> None:
    given = give(source, b"a,b,c\n1,2,3\n")
    assert isinstance(given, Refused)
    assert Statement.objects.count() == 0


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00\x01\x02",
        b"\x1f\x8b\x08",
        b"<?xml version='1.0'?><a/>",
        "é".encode("utf-16"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(source: Source, content: bytes) -> None:
    given = give(source, content)
    assert isinstance(given, Refused)
    assert given.artefact.size_bytes == len(content)
    assert "\n" not in given.sentence


def test_hostile_values_are_quarantined_not_an_error(source: Source) -> None:
    content = a_file(
        Row("r" * 300, id="a"), Row("ch_2", "9" * 30, id="b"), Row("ch_3", id="c" * 300)
    )
    given = give(source, content)
    assert isinstance(given, Statement)
    assert [row["reason"] for row in given.quarantined] == [
        "an amount is out of bounds",
        "its id is longer than 255 characters",
    ]
    assert given.lines.get().reference is None


def test_a_file_full_of_unreadable_rows_is_refused(
    source: Source, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from reliability.conf import conf  # noqa: PLC0415 - cached; set anew for this test

    monkeypatch.setattr(
        "reliability.reconcile.lines.conf", lambda: replace(conf(), quarantined_max=2)
    )
    given = give(source, a_file(*[Row(f"ch_{n}", "x") for n in range(3)]))
    assert isinstance(given, Refused)
    assert "line 4: more than 2 rows cannot be read" in given.sentence


def test_no_statement_by_the_deadline_is_its_own_report(
    source: Source, clock: time_machine.Traveller
) -> None:
    with pytest.raises(NothingToCompare, match="due by 2026-10-15 10:00 UTC"):
        compare_day(source, DAY, by="mara")
    clock.move_to(datetime(2026, 10, 15, 10, 0, tzinfo=UTC))
    made = compare_day(source, DAY, by="the planner")
    assert (made.completeness, made.counts, made.gates) == ("absent", {}, [])


def test_a_day_has_23_24_or_25_hours_in_its_own_zone(source: Source) -> None:
    with time_machine.travel(datetime(2026, 10, 26, 12, tzinfo=UTC), tick=False):
        operation(source, "ch_1", occurred_at=datetime(2026, 10, 25, 22, 30, tzinfo=UTC))
        row = Row("ch_1", occurred="2026-10-25T22:30:00+00:00")
        made = report(source, row, day=date(2026, 10, 25))
    assert made.ends_at - made.starts_at == 25 * HOUR
    assert told(made) == {("ch_1", "matched", "")}


# Versions.


def test_the_same_inputs_again_change_nothing(source: Source) -> None:
    operation(source, "ch_1")
    first = report(source, Row("ch_1"), Row("ch_2"))
    again = report(source, Row("ch_1"), Row("ch_2"))
    assert again == first
    assert (Report.objects.count(), Statement.objects.count()) == (1, 1)
    assert Artefact.objects.count() == 1
    assert first.verdicts.count() == 2


def test_a_changed_operation_makes_a_new_version_and_keeps_the_old(source: Source) -> None:
    first = report(source, Row("ch_1"))
    operation(source, "ch_1")
    second = compare_day(source, DAY, by="mara")
    first.refresh_from_db()
    assert (second.version, second.current, first.current) == (2, True, False)
    assert told(first) == {("ch_1", "missing", "never_received")}
    assert told(second) == {("ch_1", "matched", "")}


def test_a_second_file_is_a_revision_of_its_day(source: Source) -> None:
    report(source, Row("ch_1"))
    made = report(source, Row("ch_1"), Row("ch_2"))
    assert made.statement
    assert (made.statement.revision, made.version) == (2, 2)
    assert Statement.objects.get(revision=1).lines.count() == 1


def test_a_report_cannot_be_rewritten(source: Source) -> None:
    made = report(source, Row("ch_1"))
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        Report.objects.filter(pk=made.pk).update(completeness="unproven")
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        made.verdicts.update(verdict="matched")


# Forcing.


def test_a_forced_day_gives_verdicts_and_says_so_for_ever(source: Source) -> None:
    report(source, Row("ch_1"), declared=2)
    made = compare_day(
        source, DAY, by="ines", force=Force("mara", "ines", "footer is known wrong")
    )
    assert told(made) == {("ch_1", "missing", "never_received")}
    again = compare_day(source, DAY, by="mara")
    assert again == made
    assert (again.completeness, again.force_asked_by, again.forced_by, again.force_reason) == (
        "forced", "mara", "ines", "footer is known wrong",
    )  # fmt: skip


def test_one_person_cannot_force_a_day(source: Source) -> None:
    report(source, Row("ch_1"), declared=2)
    with pytest.raises(ValueError, match="second person"):
        compare_day(source, DAY, by="mara", force=Force("mara", "mara", "now"))


def test_the_database_itself_refuses_a_force_by_one_person(source: Source) -> None:
    made = report(source, Row("ch_1"), declared=2)
    copy = {
        field.attname: getattr(made, field.attname)
        for field in Report._meta.concrete_fields
        if field.name not in {"id", "public_id"}
    }
    copy |= {"version": 2, "current": False, "completeness": "forced"}
    copy |= {"force_asked_by": "mara", "forced_by": "mara", "force_reason": "now"}
    with pytest.raises(DatabaseError, match="forcing_takes_two_people"), transaction.atomic():
        Report.objects.create(**copy)
    Report.objects.create(**copy | {"forced_by": "ines"})


# Days beside each other.


def day_after(source: Source, *rows: Row, **facts: Any) -> Report:
    with time_machine.travel(MORNING_AFTER + 24 * HOUR, tick=False):
        return report(source, *rows, day=DAY + 24 * HOUR, **facts)


NEXT = "2026-10-15T12:00:00+02:00"
LATE = datetime(2026, 10, 14, 21, 0, tzinfo=UTC)


def test_what_was_in_transit_clears_on_the_next_day(source: Source) -> None:
    operation(source, "ch_late", occurred_at=LATE)
    assert told(report(source)) == {("ch_late", "in_transit", "")}
    assert told(day_after(source, Row("ch_late", occurred=NEXT))) == {
        ("ch_late", "matched_timing", "")
    }


def test_what_was_in_transit_and_never_comes_is_unexpected_on_the_next_day(
    source: Source,
) -> None:
    operation(source, "ch_late", occurred_at=LATE)
    report(source)
    assert told(day_after(source)) == {("ch_late", "unexpected", "")}


def test_what_the_day_before_listed_is_not_looked_at_again(source: Source) -> None:
    operation(source, "ch_late", occurred_at=LATE)
    report(source, Row("ch_late"))
    assert told(day_after(source)) == set()


def test_nothing_is_carried_from_a_day_that_could_not_be_compared(source: Source) -> None:
    operation(source, "ch_late", occurred_at=LATE)
    report(source, declared=1)
    assert told(day_after(source)) == set()


def test_a_line_that_a_second_day_lists_too_is_their_duplicate(source: Source) -> None:
    operation(source, "ch_1")
    report(source, Row("ch_1"))
    again = day_after(source, Row("ch_1", occurred=NEXT))
    assert told(again) == {("ch_1", "duplicate_theirs", "")}
    assert again.bridge["EUR"]["ours_minor"] == 0


def test_an_operation_a_later_day_lists_was_in_transit(source: Source) -> None:
    operation(source, "ch_1")
    assert told(report(source)) == {("ch_1", "unexpected", "")}
    day_after(source, Row("ch_1", occurred=NEXT))
    assert open_ones(source) == set()
    assert told(compare_day(source, DAY, by="mara")) == {("ch_1", "in_transit", "")}


def test_another_source_s_operations_are_not_looked_at(source: Source) -> None:
    operation(a_source("other"), "ch_1")
    operation(a_source("shop", of="borealis"), "ch_1")
    assert told(report(source, Row("ch_1"))) == {("ch_1", "missing", "never_received")}
