"""JSON lines: fields by declared path, exact numbers, one refusal per bad object."""

from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

from reliability.reconcile.formats import read
from reliability.reconcile.formats.base import SourceRules, Statement, gather

SAMPLE = Path(__file__).parents[1] / "statements" / "lines.jsonl"
OPTIONS: dict[str, object] = {
    "units": "minor",
    "columns": {
        "id": "id",
        "kind": "kind",
        "amount": "data.amount",
        "currency": "data.currency",
        "occurred": "at",
    },
    "references": {"order": "ref"},
    "rows": [{"column": "control", "equals": "count", "is": "count", "figure": "value"}],
}


def parse(data: bytes, **changes: object) -> Statement:
    rules = SourceRules(zone="UTC", options={**OPTIONS, **changes})
    (only,) = gather(read("json-lines", BytesIO(data), rules))
    return only


def test_objects_become_lines_and_the_control_object_a_count() -> None:
    found = parse(SAMPLE.read_bytes())
    first, second = found.lines
    assert (first.provider_id, first.amount_minor, first.exponent) == ("p-1", 1050, 2)
    assert first.occurred_at == datetime(2026, 10, 14, 6, tzinfo=UTC)
    assert first.references == {"order": "ord-1"}
    assert (second.amount_minor, second.currency, second.exponent) == (500, "JPY", 0)
    assert found.declared.count == 4


def test_a_fraction_of_a_minor_unit_and_a_cut_object_are_quarantined() -> None:
    found = parse(SAMPLE.read_bytes())
    assert [row.position for row in found.quarantined] == [4, 5]
    assert "'10.5'" in found.quarantined[0].reason
    assert "not a JSON object" in found.quarantined[1].reason


def test_major_units_are_read_exactly_not_as_binary_floats() -> None:
    row = b'{"id":"a","data":{"amount":0.07,"currency":"EUR"},"at":"2026-10-14"}\n'
    assert parse(row, units="major").lines[0].amount_minor == 7


def test_a_name_given_twice_is_ambiguous() -> None:
    row = b'{"id":"a","data":{"amount":1,"amount":2,"currency":"EUR"},"at":"2026-10-14"}\n'
    assert "given twice" in parse(row).quarantined[0].reason


def test_what_is_no_object_or_no_scalar_is_quarantined() -> None:
    nested = b'{"a":' + b"[" * 100_000 + b"}\n"
    found = parse(
        b'{"id":{"x":1},"data":{"amount":1,"currency":"EUR"},"at":"2026-10-14"}\n[1]\n'
        + nested
    )
    reasons = [row.reason for row in found.quarantined]
    assert reasons[0] == "field 'id' is no text or number"
    assert all("not a JSON object" in reason for reason in reasons[1:])
