"""How commands show what they found: a table for people, one JSON object for programs."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from django.core.management.base import OutputWrapper
from rich.console import Console
from rich.table import Table

Row = Mapping[str, Any]
NUMBERS = (int, float)


def say_json(out: OutputWrapper, found: Any) -> None:
    """Print one JSON value."""
    out.write(json.dumps(found, ensure_ascii=False, default=str))


def say_table(out: OutputWrapper, title: str, rows: Sequence[Row]) -> None:
    """Print rows of equal columns under a title; numbers stand to the right."""
    console = Console(file=out, markup=False, emoji=False, highlight=False)  # type: ignore[arg-type]  # OutputWrapper is a file
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
    """Write one value as a person reads it: lists with commas, nothing as nothing."""
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        return ", ".join(str(one) for one in value)
    return str(value)
