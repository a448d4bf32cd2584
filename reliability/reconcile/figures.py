"""Declared and computed figures as JSON, so that a gate can be put to them again later."""

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from reliability.reconcile.formats.base import Balance, Declared, Unit
from reliability.reconcile.tally import Tally

Json = dict[str, Any]


def declared_as_json(declared: Declared) -> Json:
    """Write what a statement declares; what it leaves unsaid is left out."""
    said = {name: getattr(declared, name) for name in Declared.__slots__}
    said |= {
        "opening": [_balance(one) for one in declared.opening],
        "closing": [_balance(one) for one in declared.closing],
        "sums": _sums(declared.sums),
    }
    return {name: _plain(value) for name, value in said.items() if value not in (None, [], {})}


def declared_from_json(said: Json) -> Declared:
    """Read it back; an unknown name is an error, as it was written by ourselves."""
    facts = dict(said)
    for name in ("opening", "closing"):
        facts[name] = tuple(_balance_from(one) for one in facts.get(name, ()))
    facts["sums"] = _sums_from(facts.get("sums", {}))
    for name, read in (
        ("period_start", datetime.fromisoformat),
        ("period_end", datetime.fromisoformat),
        ("first_day", date.fromisoformat),
        ("last_day", date.fromisoformat),
    ):
        if name in facts:
            facts[name] = read(facts[name])
    return Declared(**facts)


def tally_as_json(tally: Tally) -> Json:
    """Write what was computed while a statement was read."""
    said = {name: getattr(tally, name) for name in Tally.__slots__} | {
        "sums": _sums(tally.sums)
    }
    return {name: _plain(value) for name, value in said.items() if value is not None}


def tally_from_json(said: Json) -> Tally:
    """Read it back."""
    facts = dict(said)
    facts["sums"] = _sums_from(facts.get("sums", {}))
    for name in ("earliest_at", "latest_at"):
        if name in facts:
            facts[name] = datetime.fromisoformat(facts[name])
    for name in ("first_day", "last_day"):
        if name in facts:
            facts[name] = date.fromisoformat(facts[name])
    return Tally(**facts)


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date) else value


def _balance(one: Balance) -> Json:
    return {"minor": one.minor, "unit": list(one.unit), "day": _plain(one.day)}


def _balance_from(said: Json) -> Balance:
    day = date.fromisoformat(said["day"]) if said["day"] else None
    return Balance(minor=said["minor"], unit=Unit(*said["unit"]), day=day)


def _sums(sums: Mapping[Unit, int]) -> list[list[Any]]:
    return [[*unit, minor] for unit, minor in sorted(sums.items())]


def _sums_from(said: Any) -> dict[Unit, int]:
    return {Unit(currency, exponent): minor for currency, exponent, minor in said or ()}
