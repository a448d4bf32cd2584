"""The day's statement as Stripe's itemized balance change report prints it.

Columns: https://docs.stripe.com/reports/report-types/balance; amounts in major units. The account
settles JPY in EUR at a fixed rate, so what was charged stands in `customer_facing_amount` only.
"""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from reliability.proof.invention import Invention
from reliability.proof.stripe_objects import Charge, Refund

DECIMALS = {"EUR": 2, "GBP": 2, "USD": 2, "JPY": 0}
EUR_CENTS_PER_100_JPY = 61
FEE_PER_MILLE, FEE_FIXED_MINOR = 15, 25
DAY_FEE_MINOR = 1_250
DAYS_TO_AVAILABLE = timedelta(days=2)
COLUMNS = (
    "balance_transaction_id",
    "created_utc",
    "available_on_utc",
    "currency",
    "gross",
    "fee",
    "net",
    "reporting_category",
    "source_id",
    "description",
    "customer_facing_amount",
    "customer_facing_currency",
    "customer_id",
    "charge_id",
    "payment_intent_id",
)


@dataclass(frozen=True)
class Settled:
    """What a movement does to the balance, in minor units of the settlement currency."""

    gross_minor: int
    fee_minor: int
    currency: str


def rows(
    movements: Iterable[Charge | Refund], *, seed: str, day: date
) -> list[dict[str, str]]:
    """Print one row for each movement, oldest first, and one for the day's fee."""
    invention = Invention(seed, day)
    printed = [
        _row(invention.identifier("txn"), movement)
        for movement in sorted(movements, key=lambda movement: (movement.at, movement.id))
    ]
    return [*printed, _fee_row(invention.identifier("txn"), day)]


def written(printed: Sequence[dict[str, str]]) -> bytes:
    """Write rows as the report's CSV file: every field quoted, UTF-8, no totals."""
    text = io.StringIO()
    sheet = csv.DictWriter(text, COLUMNS, quoting=csv.QUOTE_ALL, lineterminator="\n")
    sheet.writeheader()
    sheet.writerows(printed)
    return text.getvalue().encode()


def settled(movement: Charge | Refund) -> Settled:
    """Convert into the settlement currency and take the fee; a refund costs none."""
    amount, currency = movement.price.amount_minor, movement.price.currency
    if currency == "JPY":
        amount, currency = amount * EUR_CENTS_PER_100_JPY // 100, "EUR"
    if isinstance(movement, Refund):
        return Settled(-amount, 0, currency)
    return Settled(amount, amount * FEE_PER_MILLE // 1000 + FEE_FIXED_MINOR, currency)


def major(amount_minor: int, currency: str) -> str:
    """Print minor units in major ones, in the currency's own number of decimals."""
    decimals = DECIMALS[currency]
    digits = str(abs(amount_minor)).zfill(decimals + 1)
    cut = len(digits) - decimals
    text = f"{digits[:cut]}.{digits[cut:]}" if decimals else digits
    return f"-{text}" if amount_minor < 0 else text


def _row(transaction: str, movement: Charge | Refund) -> dict[str, str]:
    paid = movement.charge if isinstance(movement, Refund) else movement
    price = movement.price
    return _balance(transaction, settled(movement), movement.at) | {
        "reporting_category": "refund" if isinstance(movement, Refund) else "charge",
        "source_id": movement.id,
        "description": f"Acme order for {paid.customer.name}",
        "customer_facing_amount": major(price.amount_minor, price.currency),
        "customer_facing_currency": price.currency.lower(),
        "customer_id": paid.customer.id,
        "charge_id": paid.id,
        "payment_intent_id": paid.payment_intent,
    }


def _fee_row(transaction: str, day: date) -> dict[str, str]:
    at = datetime.combine(day, time(22, 0), UTC)
    return _balance(transaction, Settled(-DAY_FEE_MINOR, 0, "EUR"), at) | {
        "reporting_category": "fee",
        "description": "Billing usage fee",
    }


def _balance(transaction: str, moved: Settled, at: datetime) -> dict[str, str]:
    available = datetime.combine(at.date() + DAYS_TO_AVAILABLE, time(0, 0))
    return {
        "balance_transaction_id": transaction,
        "created_utc": f"{at:%Y-%m-%d %H:%M:%S}",
        "available_on_utc": f"{available:%Y-%m-%d %H:%M:%S}",
        "currency": moved.currency.lower(),
        "gross": major(moved.gross_minor, moved.currency),
        "fee": major(moved.fee_minor, moved.currency),
        "net": major(moved.gross_minor - moved.fee_minor, moved.currency),
    }
