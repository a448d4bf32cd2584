"""Amounts and times are read whole in their declared form, or refused."""

from datetime import UTC, date, datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest

from reliability.currencies import (
    ADYEN,
    GOCARDLESS,
    ISO_4217,
    STRIPE,
    UnknownCurrency,
    exponent_of,
    money,
)
from reliability.reconcile.formats.amounts import AmountForm, minor, minor_units
from reliability.reconcile.formats.base import RowRefused, StatementError
from reliability.reconcile.formats.times import (
    NEVER,
    Moment,
    epoch,
    label_offset,
    localised,
    moment,
    zone_of,
)

PLAIN = AmountForm()
GERMAN = AmountForm(decimal=",", thousands=".", marks=("EUR", "€"))
SWISS = AmountForm(thousands="'")
BOOKS = AmountForm(thousands=",", negative="parentheses", marks=("$",))
TRAILING = AmountForm(negative="trailing minus")


@pytest.mark.parametrize(
    ("text", "form", "exponent", "expected"),
    [
        ("25.00", PLAIN, 2, 2500),
        ("+120.00", PLAIN, 2, 12000),
        ("-0.45", PLAIN, 2, -45),
        (".5", PLAIN, 2, 50),
        ("5000", PLAIN, 0, 5000),
        ("18.150", PLAIN, 2, 1815),
        ("1.234", PLAIN, 3, 1234),
        ("1.000,00", GERMAN, 2, 100000),
        ("-950,00 EUR", GERMAN, 2, -95000),
        ("€ 3,5", GERMAN, 2, 350),
        ("25.000", GERMAN, 2, 2500000),
        ("11'373.94", SWISS, 2, 1137394),
        ("($85.00)", BOOKS, 2, -8500),
        ("$.23", BOOKS, 2, 23),
        ("$1,520.00", BOOKS, 2, 152000),
        ("12.34-", TRAILING, 2, -1234),
        ("0.00", PLAIN, 2, 0),
    ],
)
def test_an_amount_in_its_declared_form_is_exact(
    text: str, form: AmountForm, exponent: int, expected: int
) -> None:
    assert minor(text, form, exponent) == expected


@pytest.mark.parametrize(
    ("text", "form", "exponent"),
    [
        ("", PLAIN, 2),
        (".", PLAIN, 2),
        ("-", PLAIN, 2),
        ("12..34", PLAIN, 2),
        ("1,234.00", PLAIN, 2),
        ("25,00", PLAIN, 2),
        ("25.005", PLAIN, 2),
        ("5.00 EUR", PLAIN, 2),
        ("1e3", PLAIN, 2),
        ("NaN", PLAIN, 2),
        ("٢٥", PLAIN, 2),
        ("1.00.000,00", GERMAN, 2),
        ("1.0000,00", GERMAN, 2),
        ("(4.00", BOOKS, 2),
        ("4.00)", BOOKS, 2),
        ("-4.00", BOOKS, 2),
        ("-12.34", TRAILING, 2),
        ("5.50", PLAIN, 0),
        ("9" * 41, PLAIN, 2),
    ],
)
def test_anything_else_is_refused_not_repaired(
    text: str, form: AmountForm, exponent: int
) -> None:
    with pytest.raises(RowRefused):
        minor(text, form, exponent)


def test_minor_units_with_an_empty_fraction_are_still_minor_units() -> None:
    assert minor_units("45.0") == 45
    assert minor_units("-1100") == -1100
    assert minor_units(45) == 45
    assert minor_units(Decimal("45.00")) == 45


@pytest.mark.parametrize("value", ["45.5", "", "4 5", None, 45.0, True, Decimal("0.5"), "NaN"])
def test_what_is_not_a_whole_number_of_minor_units_is_refused(value: object) -> None:
    with pytest.raises(RowRefused):
        minor_units(value)


def test_each_provider_has_its_own_decimals() -> None:
    assert [exponent_of("CLP", table) for table in (ISO_4217, STRIPE, ADYEN)] == [0, 0, 2]
    assert [exponent_of("CVE", table) for table in (ISO_4217, ADYEN)] == [2, 0]
    assert [exponent_of("ISK", table) for table in (ISO_4217, STRIPE, ADYEN)] == [0, 2, 2]
    assert [exponent_of("MGA", table) for table in (ISO_4217, STRIPE)] == [2, 0]
    assert [exponent_of("JPY", table) for table in (ISO_4217, STRIPE, ADYEN)] == [0, 0, 0]
    assert exponent_of("KWD", STRIPE) == 3
    with pytest.raises(UnknownCurrency, match="'JPY'"):
        exponent_of("JPY", GOCARDLESS)
    with pytest.raises(UnknownCurrency):
        exponent_of("XYZ", ISO_4217)


def test_money_is_written_with_the_units_own_decimals() -> None:
    assert money(31000, "EUR", 2) == "EUR 310.00"
    assert money(-5, "EUR", 2) == "EUR -0.05"
    assert money(1234567, "JPY", 0) == "JPY 1,234,567"
    assert money(-1234, "KWD", 3) == "KWD -1.234"


def test_a_zone_label_is_a_fixed_offset_and_an_unknown_one_is_refused() -> None:
    summer = localised(datetime(2026, 10, 25, 2, 30), label_offset("CEST"))  # noqa: DTZ001
    winter = localised(datetime(2026, 10, 25, 2, 30), label_offset("CET"))  # noqa: DTZ001
    assert summer == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    assert winter == datetime(2026, 10, 25, 1, 30, tzinfo=UTC)
    assert moment("2026-07-01 00:00:00", "iso", label_offset("PDT")).at == datetime(
        2026, 7, 1, 7, tzinfo=UTC
    )
    with pytest.raises(RowRefused, match="'XYT'"):
        label_offset("XYT")
    with pytest.raises(StatementError, match="Mars/Base"):
        zone_of("Mars/Base")


def test_a_calendar_day_stays_a_day_and_an_instant_becomes_utc() -> None:
    amsterdam = ZoneInfo("Europe/Amsterdam")
    assert moment("2026-10-14", "iso", amsterdam) == Moment(day=date(2026, 10, 14))
    assert moment("14.10.2026", "%d.%m.%Y", amsterdam) == Moment(day=date(2026, 10, 14))
    assert moment("2026-10-14T00:30:00", "iso", amsterdam) == Moment(
        at=datetime(2026, 10, 13, 22, 30, tzinfo=UTC)
    )
    assert moment(" ", "iso", amsterdam) == NEVER
    with pytest.raises(RowRefused, match="14/10"):
        moment("14/10/2026", "iso", amsterdam)


def test_a_time_the_spring_change_jumped_over_is_refused() -> None:
    amsterdam = ZoneInfo("Europe/Amsterdam")
    with pytest.raises(RowRefused, match="did not exist"):
        moment("2026-03-29T02:30:00", "iso", amsterdam)
    twice = moment("2026-10-25T02:30:00", "iso", amsterdam)
    assert twice.at == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)


def test_epoch_seconds_are_whole_and_within_the_calendar() -> None:
    assert epoch(1234567890) == datetime(2009, 2, 13, 23, 31, 30, tzinfo=UTC)
    for wrong in (True, 1.5, "1234567890", 10**18, None):
        with pytest.raises(RowRefused):
            epoch(wrong)
