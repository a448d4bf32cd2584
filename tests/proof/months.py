"""Invents a month of three sources: what happened, what each side says of it, and what is wrong.

Standard library only: what is planted here must not depend on what is to find it.
"""

import csv
import io
import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from functools import cached_property
from pathlib import Path
from random import Random
from zoneinfo import ZoneInfo

ONE_DAY = timedelta(days=1)
PLANTED = {
    "never": 40,
    "dead": 25,
    "changed": 12,
    "twice_theirs": 9,
    "twice_ours": 7,
    "late": 8,
}
CHRISTMAS = {(12, 25), (12, 26), (1, 1)}
STRIPE_HEADER = (
    "balance_transaction_id,created_utc,currency,gross,fee,net,reporting_category,source_id,"
    "customer_facing_amount,customer_facing_currency"
)
BANK_HEADER = "id,kind,reference,amount,currency,occurred,booked"
SHOP_HEADER = "nr;art;beleg;betrag;waehrung;zeit"
DECIMALS = {"EUR": 2, "GBP": 2, "USD": 2, "JPY": 0}
FIRSTS = [
    # Clocks change in October and March, in Los Angeles early in November and March.
    date(2026, 10, 1), date(2025, 12, 1), date(2026, 3, 1), date(2025, 11, 1), date(2024, 2, 1),
    date(2026, 6, 1), date(2024, 12, 1), date(2025, 3, 1), date(2025, 10, 1), date(2026, 1, 1),
]  # fmt: skip


@dataclass(frozen=True)
class Account:
    """One source: where its day begins, and whether it works on weekends."""

    name: str
    zone: str
    business: bool = False


STRIPE = Account("stripe-eu", "UTC")
BANK = Account("bank-nl", "Europe/Amsterdam", business=True)
SHOP = Account("shop-us", "America/Los_Angeles")
ACCOUNTS = (STRIPE, BANK, SHOP)


@dataclass(frozen=True)
class Movement:
    """One charge or refund, as it happened; ``fate`` is what is planted in it, if anything."""

    account: str
    reference: str
    kind: str
    amount_minor: int
    currency: str
    at: datetime
    listed_on: date
    fate: str = ""

    @property
    def listed_at(self) -> datetime:
        """When their statement says it happened: what slips over midnight is theirs a bit later."""
        zone = zone_of(self.account)
        if self.at.astimezone(zone).date() == self.listed_on:
            return self.at
        return datetime.combine(self.listed_on, time(0, 10), zone).astimezone(UTC)

    @property
    def signed_minor(self) -> int:
        return -self.amount_minor if self.kind == "refund" else self.amount_minor


@dataclass(frozen=True)
class Planted:
    """One wrong thing, and what a compare has to say of it."""

    account: str
    day: str
    reference: str
    verdict: str
    cause: str


@dataclass
class Month:
    """Everything of one month; the days with a bad, missing, repeated or revised file by account."""

    days: list[date]
    movements: list[Movement]
    truncated: tuple[str, date]
    missing: tuple[str, date]
    resent: tuple[str, date]
    revised: tuple[str, date]
    planted: list[Planted] = field(default_factory=list)

    def listed(self, account: str, day: date) -> list[Movement]:
        """Return what an account's statement of a day has to list."""
        return list(self._by_listed.get((account, day), ()))

    def happened(self, account: str, day: date) -> list[Movement]:
        """Return what happened on an account's local day."""
        return list(self._by_happened.get((account, day), ()))

    @cached_property
    def _by_listed(self) -> dict[tuple[str, date], list[Movement]]:
        return _gathered(self.movements, lambda m: m.listed_on)

    @cached_property
    def _by_happened(self) -> dict[tuple[str, date], list[Movement]]:
        return _gathered(self.movements, lambda m: m.at.astimezone(zone_of(m.account)).date())


def _gathered(
    movements: list[Movement], day_of: Callable[[Movement], date]
) -> dict[tuple[str, date], list[Movement]]:
    found: dict[tuple[str, date], list[Movement]] = defaultdict(list)
    for one in movements:
        found[one.account, day_of(one)].append(one)
    return found


def zone_of(account: str) -> ZoneInfo:
    """Return the zone in which an account's days begin and end."""
    return ZoneInfo(next(one.zone for one in ACCOUNTS if one.name == account))


def is_open(account: Account, day: date) -> bool:
    """Say whether an account has a statement for a day; the bank rests as TARGET2 does."""
    rests = day.weekday() > 4 or (day.month, day.day) in CHRISTMAS
    return not (account.business and rests)


def invent(seed: int, first: date, *, per_day: int, big_day: int = 0) -> Month:
    """Invent a month that is the same for its seed; ``big_day`` movements on one day of one source."""
    random = Random(f"month {seed}")
    last = (first.replace(day=28) + 4 * ONE_DAY).replace(day=1) - ONE_DAY
    days = [first + n * ONE_DAY for n in range((last - first).days + 1)]
    movements = [
        movement
        for account in ACCOUNTS
        for day in days[:-1]
        for movement in _day(
            random, account, day, big_day if (account, day) == (STRIPE, days[9]) else per_day
        )
        if movement.listed_on <= days[-1]
    ]
    odd = _odd_days(random, days)
    movements = list(_with_fates(random, movements, odd))
    month = Month(days, movements, *odd)
    month.planted = list(_planted(month))
    return month


Odd = tuple[tuple[str, date], tuple[str, date], tuple[str, date], tuple[str, date]]


def _odd_days(random: Random, days: list[date]) -> Odd:
    """Choose four working days, apart from each other, of accounts in turn."""
    working = [
        day for day in days[3:-4] if is_open(BANK, day) and is_open(BANK, day + ONE_DAY)
    ]
    step = max(1, len(working) // 4)
    chosen = [working[min(n * step + random.randrange(2), len(working) - 1)] for n in range(4)]
    cut, absent, again, revised = chosen
    return (STRIPE.name, cut), (BANK.name, absent), (SHOP.name, again), (BANK.name, revised)


def _day(random: Random, account: Account, day: date, count: int) -> Iterator[Movement]:
    midnight = datetime.combine(day, time(), ZoneInfo(account.zone)).astimezone(UTC)
    after = datetime.combine(day + ONE_DAY, time(), ZoneInfo(account.zone)).astimezone(UTC)
    for n in range(count):
        over = random.random() < 0.05 and is_open(account, day)
        # The last hour may be listed on the next day; nothing else is near a midnight.
        at = (
            after - timedelta(seconds=random.randrange(60, 3500))
            if over
            else (midnight + random.random() * (after - midnight - timedelta(hours=4)))
        )
        yield Movement(
            account=account.name,
            reference=f"{account.name[:2]}_{day:%m%d}_{n:06}",
            kind="refund" if random.random() < 0.1 else "charge",
            amount_minor=random.randrange(100, 90_000),
            currency=random.choice(["EUR", "EUR", "GBP"] if account is BANK else list(DECIMALS)),
            at=at.replace(microsecond=0),
            listed_on=_next_open(account, day + ONE_DAY if over else day),
        )  # fmt: skip


def _next_open(account: Account, day: date) -> date:
    while not is_open(account, day):
        day += ONE_DAY
    return day


def _with_fates(random: Random, movements: list[Movement], odd: Odd) -> Iterator[Movement]:
    """Plant the wrongs among movements of ordinary days that are listed on the day they happened."""
    plain = [
        n for n, m in enumerate(movements)
        if (m.account, m.listed_on) not in odd and m.at.astimezone(zone_of(m.account)).date() == m.listed_on
    ]  # fmt: skip
    chosen = iter(random.sample(plain, sum(PLANTED.values())))
    fates = {next(chosen): fate for fate, count in PLANTED.items() for _ in range(count)}
    for n, movement in enumerate(movements):
        yield replace(movement, fate=fates.get(n, ""))


VERDICTS = {
    "never": ("missing", "never_received"),
    "dead": ("missing", "in_dead_letter"),
    "changed": ("amount_mismatch", ""),
    "twice_theirs": ("duplicate_theirs", ""),
}


def _planted(month: Month) -> Iterator[Planted]:
    for movement in month.movements:
        if movement.fate in VERDICTS:
            yield Planted(
                movement.account, str(movement.listed_on), movement.reference,
                *VERDICTS[movement.fate],
            )  # fmt: skip


def write_planted(month: Month, path: Path) -> None:
    """Write down what is wrong, before anything is sent or compared."""
    path.write_text(json.dumps([asdict(one) for one in month.planted], indent=1))


# Their side, as files.


def rows_of(month: Month, account: str, day: date, *, first: bool = True) -> list[Movement]:
    """Return what a day's statement lists; the first sending of one day has a wrong amount."""
    rows = month.listed(account, day)
    rows += [m for m in rows if m.fate == "twice_theirs"]
    if first and (account, day) == month.revised:
        rows[0] = replace(rows[0], amount_minor=rows[0].amount_minor + 7)
    return rows


def file_of(month: Month, account: str, day: date, *, first: bool = True) -> bytes:
    """Write a day's statement; the first sending of one day is cut."""
    rows = rows_of(month, account, day, first=first)
    whole = {"stripe-eu": _stripe, "bank-nl": _bank, "shop-us": _shop}[account](rows, day)
    return whole[:-40] if first and (account, day) == month.truncated else whole


def _stripe(rows: list[Movement], day: date) -> bytes:
    sheet = io.StringIO()
    sheet.write(f"{STRIPE_HEADER}\n")
    writer = csv.writer(sheet, lineterminator="\n")
    for n, m in enumerate(rows):
        facing = m.currency == "JPY"
        settled = m.signed_minor * 61 // 100 if facing else m.signed_minor
        gross = major(settled, 2)
        writer.writerow([
            f"txn_{day:%m%d}_{n:06}", f"{m.listed_at:%Y-%m-%d %H:%M:%S}",
            "eur" if facing else m.currency.lower(), gross, "0.00", gross, m.kind, m.reference,
            major(abs(m.signed_minor), 0) if facing else "", "jpy" if facing else "",
        ])  # fmt: skip
    return sheet.getvalue().encode()


def _bank(rows: list[Movement], day: date) -> bytes:
    lines = [
        f"b{day:%m%d}-{n},{m.kind},{m.reference},{major(m.signed_minor, DECIMALS[m.currency])},"
        f"{m.currency},{m.at.isoformat()},{day}"
        for n, m in enumerate(rows)
    ]
    return "\n".join([BANK_HEADER, *lines, f"ROWS,,,{len(rows)},,,", ""]).encode()


def _shop(rows: list[Movement], _: date) -> bytes:
    lines = [
        f"{n};{m.kind};{m.reference};"
        f"{major(m.signed_minor, DECIMALS[m.currency]).replace('.', ',')};{m.currency};"
        f"{m.listed_at.isoformat()}"
        for n, m in enumerate(rows)
    ]
    foot = f"Summe Zeilen;;;{len(rows)};;"
    return "\r\n".join(["Auszug;;;;;", SHOP_HEADER, *lines, foot, ""]).encode("cp1252")


def major(minor: int, decimals: int) -> str:
    """Print minor units in major ones."""
    digits = str(abs(minor)).zfill(decimals + 1)
    cut = len(digits) - decimals
    text = f"{digits[:cut]}.{digits[cut:]}" if decimals else digits
    return f"-{text}" if minor < 0 else text
