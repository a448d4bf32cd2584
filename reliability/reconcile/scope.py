"""What one source's compare covers: which operation a line is about, and how far they may differ."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from reliability.reconcile.formats.base import Line, StatementError

#: Options of the compare; whatever else a source declares belongs to its format.
OPTIONS = frozenset(
    {
        "cadence", "currencies", "declared", "exponents", "grace_hours", "grouped_classes",
        "holidays",
        "operation_classes", "outgoing_classes", "recover_as", "recover_limit_minor",
        "reference_names", "tolerance_minor",
    }
)  # fmt: skip

_STRIPE = {"charge": "charge", "refund": "refund", "payout": "payout", "dispute": "dispute"}

#: Their word for a movement → our operation class, per format; others use the word itself.
LINE_KINDS: Mapping[str, Mapping[str, str]] = {
    "stripe-balance-csv": _STRIPE,
    "stripe-payout-csv": _STRIPE,
    "stripe-api-json": _STRIPE,
    "adyen-settlement-csv": {
        "Settled": "capture",
        "Refunded": "refund",
        "Chargeback": "dispute",
    },
    "gocardless-payout-items": {
        "payment_paid": "charge",
        "payment_refunded": "refund",
        "payment_charged_back": "dispute",
    },
}
ANY_KIND = "*"

#: Reference names by operation class, the first that a line has decides; then its own id.
REFERENCES: Mapping[str, tuple[str, ...]] = {
    "charge": ("source", "charge", "payment", "reference"),
    "capture": ("modification", "psp", "reference"),
    "refund": ("source", "refund", "modification", "reference"),
    "payout": ("source", "payout", "reference"),
    "dispute": ("source", "dispute", "modification", "payment", "reference"),
}
OTHER_REFERENCES = ("reference", "end_to_end")

#: Money that leaves: events give these amounts without a sign, statements with one.
OUTGOING = frozenset({"refund", "dispute", "payout"})


@dataclass(frozen=True, kw_only=True)
class ClassScope:
    """How one operation class is compared; ``sign`` turns our amount into a statement's."""

    operation_class: str
    sign: int
    grace: timedelta
    tolerance_minor: int
    references: tuple[str, ...]
    grouped: bool = False
    """Compared by payout or batch: one item on one side against many, by their sum."""


@dataclass(frozen=True, kw_only=True)
class Scope:
    """The classes a source compares, and the words its statement has for them."""

    classes: Mapping[str, ClassScope]
    line_kinds: Mapping[str, str]
    by_own_id: bool

    def operation(self, line: Line) -> tuple[str | None, str | None]:
        """Return (operation class, reference) of a line; no class: out of scope.

        Of a class that is compared in groups, the group is the reference.
        """
        named = self.line_kinds.get(line.kind) or self.line_kinds.get(ANY_KIND, line.kind)
        scope = self.classes.get(named)
        if scope is None:
            return None, None
        if scope.grouped and line.group:
            return named, line.group
        for name in scope.references:
            if found := line.references.get(name):
                return named, found
        return named, line.provider_id if self.by_own_id else None


def scope_of(
    statement_format: str,
    classes: Sequence[str],
    options: Mapping[str, object],
    *,
    grace_hours: int,
) -> Scope:
    """Read a source's set-up; options that contradict each other are refused by name."""
    line_kinds = {
        **LINE_KINDS.get(statement_format, {}),
        **_names(options, "operation_classes"),
    }
    outgoing = OUTGOING | set(_list(options, "outgoing_classes"))
    grace, tolerance = _numbers(options, "grace_hours"), _numbers(options, "tolerance_minor")
    names = tuple(_list(options, "reference_names"))
    grouped = _list(options, "grouped_classes")
    return Scope(
        classes={
            one: ClassScope(
                operation_class=one,
                sign=-1 if one in outgoing else 1,
                grace=timedelta(hours=grace.get(one, grace_hours)),
                tolerance_minor=tolerance.get(one, 0),
                references=names or REFERENCES.get(one, OTHER_REFERENCES),
                grouped=one in grouped,
            )
            for one in classes
        },
        line_kinds=line_kinds,
        # A balance transaction's id is nobody's reference; a mapped file's own id may be.
        by_own_id=statement_format in {"mapped-csv", "json-lines"},
    )


def _names(options: Mapping[str, object], name: str) -> dict[str, str]:
    value = options.get(name, {})
    if not isinstance(value, Mapping):
        raise _wrong(name, "map words to words")
    return {str(key): str(said) for key, said in value.items()}


def _numbers(options: Mapping[str, object], name: str) -> dict[str, int]:
    value = options.get(name, {})
    if not isinstance(value, Mapping) or not all(type(n) is int for n in value.values()):
        raise _wrong(name, "map operation classes to whole numbers")
    return {str(key): int(number) for key, number in value.items()}


def _list(options: Mapping[str, object], name: str) -> list[str]:
    value = options.get(name, [])
    if not isinstance(value, list | tuple):
        raise _wrong(name, "be a list of words")
    return [str(one) for one in value]


def _wrong(name: str, must: str) -> StatementError:
    return StatementError(
        0, f"statement option {name!r} must {must}", "correct the source's statement options"
    )
