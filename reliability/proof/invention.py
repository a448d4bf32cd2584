"""Invented customers, amounts, ids and hours, all drawn from one seed."""

import random
import string
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

ALPHABET = string.ascii_letters + string.digits
CUSTOMERS = 40
FAILING_CUSTOMER = "cus_Qz7fW3TmK0xPbL"
# Between these hours a UTC day and any European provider's day are the same date.
OPENS_AT, OPEN_HOURS = time(3, 0, tzinfo=UTC), 17

# Currency: how often, usual least and most in minor units. JPY has no minor unit.
PRICES = {"EUR": (5, 490, 24_900), "GBP": (2, 399, 19_900), "USD": (2, 500, 29_900)} | {
    "JPY": (1, 480, 39_800)
}
FIRST_NAMES = (
    "Ines",
    "Bram",
    "Noor",
    "Tariq",
    "Maja",
    "Oisin",
    "Keiko",
    "Luca",
    "Freya",
    "Sol",
)
LAST_NAMES = ("Vermeer", "Okafor", "Lindqvist", "Duarte", "Hale", "Morita", "Keller", "Novak")


@dataclass(frozen=True)
class Customer:
    id: str
    name: str
    email: str


@dataclass(frozen=True)
class Price:
    amount_minor: int
    currency: str


class Invention:
    """Draws from one random stream, so the order of calls is part of the story."""

    def __init__(self, seed: str, day: date) -> None:
        self._random = random.Random(seed)
        self._opens_at = datetime.combine(day, OPENS_AT)
        self._customers = [
            self._customer(self.identifier("cus", 14)) for _ in range(CUSTOMERS)
        ]
        self.failing_customer = self._customer(FAILING_CUSTOMER)

    def identifier(self, prefix: str, length: int = 24) -> str:
        """Draw an id such as `evt_1Qx…`."""
        return f"{prefix}_" + "".join(self._random.choices(ALPHABET, k=length))

    def customer(self) -> Customer:
        """Draw one of the day's customers, never the one whose handler fails."""
        return self._random.choice(self._customers)

    def price(self) -> Price:
        """Draw an amount in a currency's usual range."""
        often = [weight for weight, _, _ in PRICES.values()]
        currency = self._random.choices(list(PRICES), weights=often)[0]
        _, least, most = PRICES[currency]
        return Price(self._random.randint(least, most), currency)

    def moment(self) -> datetime:
        """Draw a whole second of the provider's day, early enough for what may follow."""
        return self._opens_at + timedelta(seconds=self._random.randrange(OPEN_HOURS * 3600))

    def number(self, least: int, most: int) -> int:
        """Draw a whole number, both ends included."""
        return self._random.randint(least, most)

    def _customer(self, identifier: str) -> Customer:
        first, last = self._random.choice(FIRST_NAMES), self._random.choice(LAST_NAMES)
        return Customer(identifier, f"{first} {last}", f"{first}.{last}@example.com".lower())
