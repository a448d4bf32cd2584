"""What a source declares about a file that has no fixed shape: its columns, forms and controls."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from reliability.reconcile.formats.amounts import AmountForm, Negative
from reliability.reconcile.formats.base import StatementError
from reliability.reconcile.formats.table import Dialect

Meaning = Literal["skip", "opening", "closing", "count", "sum", "trailer"]
FIELDS = (
    "id", "kind", "amount", "debit", "credit", "direction", "currency", "fee", "net",
    "occurred", "booked", "available", "zone", "status", "account", "mode", "balance", "group",
)  # fmt: skip
_DIALECT = ("encoding", "separator", "quote", "preamble_rows_max")
_FORM = ("decimal", "thousands", "negative", "marks")
_OTHER = (
    "columns", "references", "header", "units", "sign", "incoming", "outgoing", "currency",
    "kind", "dates", "live", "test", "final", "balance_order", "rows",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class RowRule:
    """A row that is no movement: to skip, or a control figure in column ``figure``.

    It applies where the text of ``column`` equals ``equals`` or starts with ``starts``.
    """

    column: str
    meaning: Meaning
    equals: str | None = None
    starts: str | None = None
    figure: str | None = None

    def applies(self, text: str) -> bool:
        """Say whether a row whose column holds ``text`` is meant by this rule."""
        if self.equals is not None:
            return text.strip() == self.equals
        return self.starts is not None and text.lstrip().startswith(self.starts)


@dataclass(frozen=True, kw_only=True)
class Mapped:
    """The declared shape: field name → exact header name, and how each is written."""

    columns: Mapping[str, str]
    references: Mapping[str, str]
    header: tuple[str, ...] | None
    dialect: Dialect
    form: AmountForm
    units: Literal["major", "minor"]
    inverted: bool
    incoming: frozenset[str]
    outgoing: frozenset[str]
    currency: str | None
    kind: str
    dates: str
    live: frozenset[str]
    test: frozenset[str]
    final: frozenset[str]
    newest_first: bool
    rules: tuple[RowRule, ...] = field(default=())
    preamble_rows_max: int = 0

    @property
    def needed(self) -> list[str]:
        """Every header name a field, a reference or a row rule refers to, once each."""
        names = [*self.columns.values(), *self.references.values()]
        for rule in self.rules:
            names += [rule.column, *([rule.figure] if rule.figure else [])]
        return list(dict.fromkeys(names))


def mapped(options: Mapping[str, object]) -> Mapped:
    """Read a source's options; an unknown, missing or contradictory one is refused by name."""
    if unknown := set(options) - {*_DIALECT, *_FORM, *_OTHER}:
        raise _wrong(f"option {min(unknown)!r} does not exist")
    columns, references = _names(options, "columns"), _names(options, "references")
    _check_columns(columns, options)
    header = options.get("header")
    return Mapped(
        columns=columns,
        references=references,
        header=_texts(options, "header") if header is not None else None,
        dialect=Dialect(
            _text(options, "encoding", "utf-8"),
            _text(options, "separator", ","),
            _text(options, "quote", '"'),
        ),
        form=_form(options),
        units="minor" if _choice(options, "units", ("major", "minor")) == "minor" else "major",
        inverted=_choice(options, "sign", ("as written", "inverted")) == "inverted",
        incoming=frozenset(_texts(options, "incoming")),
        outgoing=frozenset(_texts(options, "outgoing")),
        currency=_text(options, "currency", "") or None,
        kind=_text(options, "kind", "payment"),
        dates=_text(options, "dates", "iso"),
        live=frozenset(_texts(options, "live")),
        test=frozenset(_texts(options, "test")),
        final=frozenset(_texts(options, "final")),
        newest_first=_choice(options, "balance_order", ("oldest first", "newest first"))
        == "newest first",
        rules=tuple(_rule(one) for one in _list(options, "rows")),
        preamble_rows_max=_number(options, "preamble_rows_max"),
    )


def _check_columns(columns: Mapping[str, str], options: Mapping[str, object]) -> None:
    if unknown := set(columns) - set(FIELDS):
        raise _wrong(f"columns has {min(unknown)!r}, which is no field")
    if ("amount" in columns) == ("debit" in columns or "credit" in columns):
        raise _wrong("columns needs 'amount', or 'debit' and 'credit', not both")
    if ("debit" in columns) != ("credit" in columns):
        raise _wrong("columns needs 'debit' and 'credit' together")
    if "direction" in columns and not (options.get("incoming") and options.get("outgoing")):
        raise _wrong("a direction column needs the words 'incoming' and 'outgoing'")
    if "currency" not in columns and not options.get("currency"):
        raise _wrong("the currency is neither a column nor declared")
    if "mode" in columns and not (options.get("live") and options.get("test")):
        raise _wrong("a mode column needs the words 'live' and 'test'")
    if "occurred" not in columns and "booked" not in columns:
        raise _wrong("columns needs 'occurred' or 'booked'")


def _form(options: Mapping[str, object]) -> AmountForm:
    decimal, thousands = _text(options, "decimal", "."), _text(options, "thousands", "")
    if decimal == thousands or len(decimal) != 1 or len(thousands) > 1:
        raise _wrong("'decimal' and 'thousands' must be two different single characters")
    negative = _choice(options, "negative", get_args(Negative))
    kinds: dict[str, Negative] = {name: name for name in get_args(Negative)}
    return AmountForm(decimal, thousands, kinds[negative], _texts(options, "marks"))


def _rule(one: object) -> RowRule:
    parts = {"column", "is", "equals", "starts", "figure"}
    if not isinstance(one, Mapping) or not {"column", "is"} <= set(one) <= parts:
        raise _wrong(
            f"row rule {one!r} is not of the form {{column, is, equals|starts, figure}}"
        )
    rule = {name: _text(one, name, "") or None for name in ("equals", "starts", "figure")}
    meaning = _choice(one, "is", get_args(Meaning))
    if (rule["equals"] is None) == (rule["starts"] is None):
        raise _wrong(f"row rule on {one['column']!r} needs 'equals' or 'starts'")
    if (meaning in ("skip", "trailer")) != (rule["figure"] is None):
        raise _wrong(
            f"row rule {meaning!r} on {one['column']!r}: 'figure' names the column read"
        )
    meanings: dict[str, Meaning] = {name: name for name in get_args(Meaning)}
    return RowRule(column=_text(one, "column", ""), meaning=meanings[meaning], **rule)


def _text(options: Mapping[str, object], name: str, default: str) -> str:
    value = options.get(name, default)
    if not isinstance(value, str):
        raise _wrong(f"option {name!r} must be text")
    return value


def _choice(options: Mapping[str, object], name: str, choices: tuple[str, ...]) -> str:
    value = _text(options, name, choices[0])
    if value not in choices:
        raise _wrong(f"option {name!r} must be one of {', '.join(choices)}")
    return value


def _list(options: Mapping[str, object], name: str) -> list[object]:
    value = options.get(name, [])
    if not isinstance(value, list | tuple):
        raise _wrong(f"option {name!r} must be a list")
    return list(value)


def _texts(options: Mapping[str, object], name: str) -> tuple[str, ...]:
    texts = [value for value in _list(options, name) if isinstance(value, str)]
    if len(texts) != len(_list(options, name)):
        raise _wrong(f"option {name!r} must be a list of texts")
    return tuple(texts)


def _names(options: Mapping[str, object], name: str) -> dict[str, str]:
    value = options.get(name, {})
    if not isinstance(value, Mapping) or not all(isinstance(v, str) for v in value.values()):
        raise _wrong(f"option {name!r} must map names to header names")
    return {str(key): str(column) for key, column in value.items()}


def _number(options: Mapping[str, object], name: str) -> int:
    value = options.get(name, 0)
    if (
        not isinstance(value, int)
        or isinstance(value, bool)
        or not 0 <= value <= _PREAMBLE_MAX
    ):
        raise _wrong(f"option {name!r} must be a number from 0 to {_PREAMBLE_MAX}")
    return value


_PREAMBLE_MAX = 100


def _wrong(rule: str) -> StatementError:
    return StatementError(0, rule, "correct the source's format options")
