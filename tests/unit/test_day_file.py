"""A day from a file is read strictly: what is unclear is refused with its line."""

import json
from datetime import date
from pathlib import Path

import pytest

from reliability.proof.cast import KINDS
from reliability.proof.day_file import DayRefused, FileDay, read_day

ORDER = (
    '{"scheme": "standard-webhooks", "body": {"id": "msg_1", "type": "order.paid", "n": 1.50}}'
)
CHARGE = '{"scheme": "stripe", "body": {"id": "evt_1", "type": "charge.succeeded"}}'
ODD = '{"scheme": "stripe", "body": {"id": "evt_2", "type": "payout.paid"}}'


def written(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "day.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_each_line_is_an_event_with_the_bytes_of_its_body(tmp_path: Path) -> None:
    order, charge = read_day(written(tmp_path, ORDER, CHARGE), kinds=KINDS)
    assert (order.source, order.key, order.kind) == (
        "borealis-shop", "msg_1", "standard-webhooks.order.paid",
    )  # fmt: skip
    assert order.body == b'{"id": "msg_1", "type": "order.paid", "n": 1.50}'
    assert (charge.source, charge.event_type) == ("acme-stripe", "charge.succeeded")


def test_its_replays_are_drawn_as_those_of_any_day(tmp_path: Path) -> None:
    given = read_day(written(tmp_path, ORDER, CHARGE), kinds=KINDS)
    day = FileDay(
        seed=1, events=2, day=date(2026, 11, 29), given=given, repeats_per_hundred=50
    )
    sent = [delivery.event.key for delivery in day.deliveries(1)]
    assert sorted(set(sent)) == ["evt_1", "msg_1"]
    assert len(sent) == 3
    again = FileDay(
        seed=1, events=2, day=date(2026, 11, 29), given=given, repeats_per_hundred=50
    )
    assert [delivery.event.key for delivery in again.deliveries(1)] == sent


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[]", "it is no object of a scheme and a body"),
        ('{"scheme": "stripe", "body": {"id": 7, "type": "a"}}', "it is no object"),
        ('{"scheme": "stripe", "body": "{}"}', "it is no object"),
        ('{"scheme": "stripe", "scheme": "stripe", "body": {}}', "twice"),
        (CHARGE.replace('"scheme"', '"headers": {}, "scheme"'), "more than scheme and body"),
        (CHARGE.replace("stripe", "adyen"), "scheme 'adyen' is none of generic-hmac"),
        (CHARGE.replace("evt_1", ""), "its id or type is empty"),
        (CHARGE.replace("evt_1", "e" * 256), "longer than 255 bytes"),
        (ODD, "nobody here works 'stripe.payout.paid'"),
        (ORDER, "'msg_1' stands there twice"),
    ],
)
def test_a_line_that_is_unclear_is_refused_by_its_number(
    tmp_path: Path, line: str, why: str
) -> None:
    with pytest.raises(DayRefused, match=r"day\.jsonl, line 2: ") as refused:
        read_day(written(tmp_path, ORDER, line), kinds=KINDS)
    assert why in str(refused.value)


def test_any_kind_may_stand_there_where_the_host_works_them(tmp_path: Path) -> None:
    [odd] = read_day(written(tmp_path, ODD), kinds=None)
    assert odd.kind == "stripe.payout.paid"


def test_a_file_without_events_or_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DayRefused, match="holds no event"):
        read_day(written(tmp_path), kinds=None)
    with pytest.raises(DayRefused, match="cannot be read"):
        read_day(tmp_path / "none.jsonl", kinds=None)


def test_a_line_without_bounds_is_refused(tmp_path: Path) -> None:
    long = json.dumps({"scheme": "stripe", "body": {"id": "e", "type": "t", "x": "y" * 2**20}})
    with pytest.raises(DayRefused, match="too many, or too long"):
        read_day(written(tmp_path, long), kinds=None)
