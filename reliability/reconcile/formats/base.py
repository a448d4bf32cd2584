"""What every statement format reads and yields: lines, quarantined rows, declared figures."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import BinaryIO, Literal, NamedTuple, Protocol

from reliability.currencies import exponent_of
from reliability.errors import ReliabilityError

Mode = Literal["live", "test"]

#: One physical line, one XML element or one JSON object of a statement, at most.
ROW_BYTES_MAX = 1024 * 1024


class StatementError(ReliabilityError):
    """The file as a whole cannot be trusted: nothing of it may be compared.

    ``line`` is the physical line in the file, 0 where the file as a whole is meant.
    """

    def __init__(self, line: int, rule: str, remedy: str) -> None:
        super().__init__(f"line {line}: {rule}; {remedy}" if line else f"{rule}; {remedy}")
        self.line = line
        self.rule = rule
        self.remedy = remedy


class RowRefused(ReliabilityError):
    """One row cannot be read without guessing; it is quarantined, the file goes on."""


class Unit(NamedTuple):
    """What a minor amount counts: an ISO currency and the provider's number of decimals."""

    currency: str
    exponent: int


class Units:
    """The units of one provider's exponent table, by currency code in any case."""

    def __init__(self, table: Mapping[str, int]) -> None:
        self._table = table
        self._known: dict[str, Unit] = {}

    def of(self, code: str) -> Unit:
        """Look a currency up; raises ``UnknownCurrency`` instead of assuming two decimals."""
        unit = self._known.get(code)
        if unit is None:
            unit = Unit(code.upper(), exponent_of(code.upper(), self._table))
            self._known[code] = unit
        return unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """A booked balance the statement prints, with its own day where it carries one."""

    minor: int
    unit: Unit
    day: date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What the provider says about one statement; every figure is ``None`` or empty if unsaid.

    It is yielded after the statement's lines, so it also ends the statement: a file with
    three statements yields three. ``sums`` are of the lines' effects (see ``Line.effect``).
    ``trailer`` is ``None`` where the format has no end mark, ``False`` where it is missing.
    """

    opening: tuple[Balance, ...] = ()
    closing: tuple[Balance, ...] = ()
    count: int | None = None
    sums: Mapping[Unit, int] = field(default_factory=dict)
    period_start: datetime | None = None
    period_end: datetime | None = None
    first_day: date | None = None
    last_day: date | None = None
    account: str | None = None
    mode: Mode | None = None
    sequence: int | None = None
    reference: str | None = None
    trailer: bool | None = None

    def or_else(self, other: "Declared | None") -> "Declared":
        """Fill what this statement leaves unsaid from ``other``, a summary given beside it."""
        if other is None:
            return self
        unsaid = {
            name: getattr(other, name)
            for name in self.__slots__
            if getattr(self, name) in (None, (), {})
        }
        return replace(self, **unsaid)


class Line(NamedTuple):
    """One movement the provider says happened (a tuple: a million are made per file).

    ``amount_minor`` is signed from our account's side and in presentment currency;
    ``settled_minor`` is the same movement in settlement currency where that differs.
    ``fee_minor`` (positive: we pay) and ``net_minor`` are in settlement currency.
    A moment is an instant *or* a day, never one made up from the other.
    """

    position: int
    raw: str
    kind: str
    amount_minor: int
    currency: str
    exponent: int
    provider_id: str | None = None
    references: Mapping[str, str] = {}
    settled_minor: int | None = None
    settled_currency: str | None = None
    settled_exponent: int | None = None
    fee_minor: int | None = None
    net_minor: int | None = None
    occurred_at: datetime | None = None
    occurred_day: date | None = None
    booked_at: datetime | None = None
    booked_day: date | None = None
    available_at: datetime | None = None
    available_day: date | None = None
    status: str = ""
    group: str | None = None

    @property
    def settlement_unit(self) -> Unit:
        """The unit of ``settled_minor``, ``fee_minor`` and ``net_minor``."""
        if self.settled_currency is None or self.settled_exponent is None:
            return Unit(self.currency, self.exponent)
        return Unit(self.settled_currency, self.settled_exponent)

    @property
    def effect_minor(self) -> int:
        """What the line does to the account's balance, in ``settlement_unit``."""
        if self.net_minor is not None:
            return self.net_minor
        return self.amount_minor if self.settled_minor is None else self.settled_minor


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A row that could not be read without guessing, kept as it came."""

    position: int
    raw: str
    reason: str


Item = Line | Quarantined | Declared


@dataclass(frozen=True, kw_only=True)
class SourceRules:
    """How one source's statements are to be read.

    ``zone`` is the IANA zone of times that carry none. ``options`` belong to the format.
    ``exponents`` overrides the format's own table. ``declared`` is the provider's summary,
    fetched beside a file that prints none. ``accounts``/currency checks are the gates' work.
    """

    zone: str
    account: str = ""
    mode: Mode = "live"
    options: Mapping[str, object] = field(default_factory=dict)
    exponents: Mapping[str, int] = field(default_factory=dict)
    declared: Declared | None = None


class StatementFormat(Protocol):
    """One way a statement is written; each module of this package but the base is one."""

    def fingerprint(self, head: bytes) -> bool:
        """Say whether a file that starts with ``head`` (some KiB) is of this format."""
        ...

    def read(self, stream: BinaryIO, rules: SourceRules) -> Iterator[Item]:
        """Yield each statement's lines in file order, then its ``Declared``.

        Lazy: holds one row (or one statement of a bank's file), whatever the file's size.
        Raises :class:`StatementError` where the file as a whole must be refused.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class Statement:
    """One statement held in memory, for previews and tests."""

    declared: Declared
    lines: tuple[Line, ...]
    quarantined: tuple[Quarantined, ...]


def gather(items: Iterable[Item]) -> list[Statement]:
    """Collect what a format yields into whole statements; memory grows with the file."""
    statements: list[Statement] = []
    lines: list[Line] = []
    quarantined: list[Quarantined] = []
    for item in items:
        match item:
            case Line():
                lines.append(item)
            case Quarantined():
                quarantined.append(item)
            case Declared():
                statements.append(
                    Statement(
                        declared=item, lines=tuple(lines), quarantined=tuple(quarantined)
                    )
                )
                lines, quarantined = [], []
    return statements


class Identity(NamedTuple):
    """What makes a line the same line when the file comes again.

    ``occurrence`` counts from 1 within one file: two equal rows are two lines, and a
    provider id that repeats in a file shows as occurrence 2.
    """

    basis: Literal["provider_id", "content"]
    key: str
    occurrence: int


class Identities:
    """Number the lines of one file; memory grows with the distinct keys it has seen."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def of(self, line: Line) -> Identity:
        """Give the next line, in file order, its identity within the source."""
        basis: Literal["provider_id", "content"]
        if line.provider_id:
            basis, key = "provider_id", line.provider_id
        else:
            basis, key = "content", content_hash(line)
        self._seen[f"{basis}:{key}"] += 1
        return Identity(basis, key, self._seen[f"{basis}:{key}"])


def content_hash(line: Line) -> str:
    """Hash what the line says (SHA-256, hex), not how or where the file wrote it."""
    said = line._replace(position=0, raw="", references=dict(sorted(line.references.items())))
    text = json.dumps(said, default=str, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
