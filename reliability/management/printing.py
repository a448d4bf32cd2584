"""How commands show what they found: a table for people, one JSON object for programs."""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from django.core.management.base import OutputWrapper
from rich.console import Console
from rich.table import Table

Row = Mapping[str, Any]
NUMBERS = (int, float)
WIDTH = 200
"""Columns where nothing tells: a pipe, a file."""
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def say_json(out: OutputWrapper, found: Any) -> None:
    """Print one JSON value."""
    out.write(json.dumps(found, ensure_ascii=False, default=str))


def say_table(out: OutputWrapper, title: str, rows: Sequence[Row]) -> None:
    """Print rows of equal columns under a title; numbers stand to the right."""
    width = None if out.isatty() else WIDTH
    console = Console(file=out, width=width, markup=False, emoji=False, highlight=False)  # type: ignore[arg-type]  # OutputWrapper is a file
    table = Table(title=title, title_justify="left", title_style="bold")
    for name, value in rows[0].items() if rows else ():
        table.add_column(
            name.replace("_", " "),
            justify="right" if isinstance(value, NUMBERS) else "left",
            overflow="fold",
        )
    for row in rows:
        table.add_row(*(cell(value) for value in row.values()))
    console.print(table if rows else f"{title}: none.")


def say_facts(out: OutputWrapper, facts: Row) -> None:
    """Print named facts, one a line, names of one width."""
    width = max((len(name) for name in facts), default=0) + 2
    for name, value in facts.items():
        out.write(f"{name.replace('_', ' '):<{width}}{cell(value)}")


def cell(value: Any) -> str:
    """Write one value as a person reads it; what could steer a terminal is shown as a mark."""
    if value is None:
        return ""
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def amount(minor: int | None, currency: str | None, exponent: int | None) -> str:
    """Write an amount in its currency's major unit; empty where none is known."""
    if minor is None or currency is None:
        return ""
    return f"{Decimal(minor).scaleb(-(exponent or 0)):f} {currency}"


def moment(at: datetime | None) -> str:
    """Write a time in UTC, to the second."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}" if at else ""
