"""What every statement format promises, whichever provider wrote the file."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from io import BytesIO
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from reliability.reconcile.formats import FORMATS, HEAD_BYTES, identify, read
from reliability.reconcile.formats.base import (
    Declared,
    Identities,
    Item,
    Line,
    Quarantined,
    SourceRules,
    StatementError,
    gather,
)

SAMPLES = Path(__file__).parents[1] / "statements"


@dataclass(frozen=True)
class Sample:
    """A good file of one format, and how a source declares it."""

    name: str
    file: str
    options: dict[str, Any] = field(default_factory=dict)

    def data(self) -> bytes:
        return (SAMPLES / self.file).read_bytes()

    def items(self, data: bytes | None = None) -> Iterator[Item]:
        rules = SourceRules(zone="Europe/Amsterdam", options=self.options)
        return read(self.name, BytesIO(self.data() if data is None else data), rules)


GOOD = [
    Sample("stripe-payout-csv", "stripe_payout.csv"),
    Sample("stripe-api-json", "stripe_api_pages.jsonl"),
    Sample("adyen-settlement-csv", "adyen_carry_over.csv"),
    Sample("camt053", "camt053_batch.xml"),
    Sample("mt940", "mt940_year_end.sta"),
    Sample("gocardless-payout-items", "gocardless_payout.jsonl"),
    Sample("stripe-balance-csv", "stripe_balance.csv"),
    Sample(
        "json-lines",
        "lines.jsonl",
        {
            "units": "minor",
            "columns": {
                "id": "id",
                "kind": "kind",
                "amount": "data.amount",
                "currency": "data.currency",
                "occurred": "at",
            },
        },
    ),
    Sample(
        "mapped-csv",
        "mapped_modes.csv",
        {
            "columns": {
                "id": "id",
                "occurred": "day",
                "amount": "amount",
                "currency": "currency",
            }
        },
    ),
]
each = pytest.mark.parametrize("sample", GOOD, ids=lambda sample: sample.name)


def test_every_format_has_a_sample_here() -> None:
    assert {sample.name for sample in GOOD} == set(FORMATS)


@each
def test_a_file_is_identified_as_what_it_is(sample: Sample) -> None:
    assert FORMATS[sample.name].fingerprint(sample.data()[:HEAD_BYTES])
    assert identify(sample.data()[:HEAD_BYTES]) == sample.name


@each
def test_lines_come_in_file_order_and_a_declared_ends_the_statement(sample: Sample) -> None:
    items = list(sample.items())
    assert isinstance(items[-1], Declared)
    rows = [item for item in items if not isinstance(item, Declared)]
    assert rows
    positions = [row.position for row in rows]
    assert positions == sorted(positions)
    assert min(positions) >= 1
    assert all(row.raw for row in rows)


@each
def test_amounts_are_whole_and_moments_aware_or_a_day(sample: Sample) -> None:
    lines = [item for item in sample.items() if isinstance(item, Line)]
    assert lines
    for line in lines:
        whole = (
            line.amount_minor,
            line.settled_minor or 0,
            line.fee_minor or 0,
            line.net_minor or 0,
        )
        assert [type(amount) for amount in whole] == [int] * 4
        assert len(line.currency) == 3
        assert line.currency.isupper()
        moments = (line.occurred_at, line.booked_at, line.available_at)
        assert all(at.utcoffset() == timedelta(0) for at in moments if at)
        days = (line.occurred_day, line.booked_day, line.available_day)
        assert not any(at and day for at, day in zip(moments, days, strict=True))
        assert any(moments) or any(days)


@each
def test_the_same_bytes_give_the_same_items_and_identities(sample: Sample) -> None:
    assert list(sample.items()) == list(sample.items())
    one, two = Identities(), Identities()
    first = [one.of(item) for item in sample.items() if isinstance(item, Line)]
    again = [two.of(item) for item in sample.items() if isinstance(item, Line)]
    assert first == again
    assert len(set(first)) == len(first)


@each
@pytest.mark.parametrize("cut", [0.35, 0.6, 0.9])
def test_a_cut_file_never_passes_for_the_whole_one(sample: Sample, cut: float) -> None:
    whole = gather(sample.items())
    data = sample.data()
    try:
        part = gather(sample.items(data[: int(len(data) * cut)]))
    except StatementError:
        return
    assert part != whole
    amounts = [line.amount_minor for one in whole for line in one.lines]
    read_amounts = [line.amount_minor for one in part for line in one.lines]
    assert read_amounts == amounts[: len(read_amounts)]


@each
@pytest.mark.parametrize(
    "data",
    [b"", b"\0" * 64, b"PK\x03\x04rest", b"\x1f\x8brest", b"%PDF-1.7", b"\xff\xfea\0b\0"],
    ids=["empty", "zeros", "zip", "gzip", "pdf", "utf-16"],
)
def test_what_is_no_text_is_refused_whole(sample: Sample, data: bytes) -> None:
    with pytest.raises(StatementError) as refused:
        list(sample.items(data))
    assert refused.value.rule
    assert refused.value.remedy


@each
def test_a_nul_byte_in_the_middle_refuses_the_file(sample: Sample) -> None:
    data = sample.data()
    middle = len(data) // 2
    with pytest.raises(StatementError):
        list(sample.items(data[:middle] + b"\0" + data[middle:]))


@each
def test_an_unknown_currency_is_never_read_as_a_known_one(sample: Sample) -> None:
    for known in (b"EUR", b"eur", b"CAD", b"GBP"):
        data = sample.data().replace(known, known[:1] + b"QX" if known.isupper() else b"eqx")
        if data == sample.data():
            continue
        try:
            items = list(sample.items(data))
        except StatementError:
            continue
        assert not any("Q" in item.currency for item in items if isinstance(item, Line))
        assert any(isinstance(item, Quarantined) for item in items)


@pytest.mark.parametrize("name", ["stripe-balance-csv", "mapped-csv", "json-lines"])
def test_the_first_line_is_there_before_the_file_is_read(name: str) -> None:
    sample = next(one for one in GOOD if one.name == name)
    head = b"".join(
        sample.data().splitlines(keepends=True)[: 1 if name == "json-lines" else 2]
    )
    stream = Endless(head)
    rules = SourceRules(zone="UTC", options=sample.options)
    items = FORMATS[name].read(stream, rules)
    assert isinstance(next(items), Line)
    assert stream.given < 4 * 1024 * 1024
    assert len(list(takewhile(lambda _: stream.given < 64 * 1024, items))) > 100


class Endless(BytesIO):
    """A file whose last line repeats without end."""

    def __init__(self, head: bytes) -> None:
        super().__init__(head)
        self._last = head.splitlines(keepends=True)[-1]
        self.given = 0

    def readline(self, size: int | None = -1, /) -> bytes:
        line = super().readline(size) or self._last
        self.given += len(line)
        return line
